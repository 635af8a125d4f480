"""A node with something to look at: orders in segments and in the WAL, groups that lag, pipelines and dead letters."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from console_parts import hostile
from node.process import Node
from node.storage import EmbeddedStorage, committed_records
from node.wait import eventually
from rest_parts.caller import RestCaller
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.pipelines.registry import STATE_VARIABLE, QueryState, Registry, RunRecord, state_directory
from streamhouse.wire.http.rest.groups import MAX_IDLE_MS

ORDERS = "orders"
ORDER_COUNT = 240
PARTITIONS = 4
HOSTILE = "hostile"
DEAD_LETTERS = "revenue.dead"
BILLING = "billing"
"""Has read a part of the orders, and nobody is in it."""
AUDIT = "audit"
"""Has a member."""
PIPELINE = "revenue"
FAILED_PIPELINE = "broken-export"
LETTER_ERROR = "the value is not JSON of the declared schema"
_CUSTOMERS = 12
_FIRST_ORDER_MS = 1_760_000_000_000
_IN_A_YEAR_MS = SystemClock().now_ms() + 365 * 86_400_000
"""Of a run that has been heard of just now, however long the tests take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    node: Node
    rest: RestCaller
    state_dir: Path

    @property
    def http(self) -> str:
        return self.node.http

    def create_topic(self, name: str, partitions: int = 1, **config: str) -> str:
        body = {"name": name, "partition_count": partitions, "config": _dotted(config)}
        self.rest.post("topics", body, status=201)
        return name

    def produce(self, topic: str, records: list[dict[str, Any]], **formats: str) -> None:
        self.rest.post(f"topics/{topic}/records", {"records": records, **formats})

    def read_with(self, group: str, topic: str, count: int, client_id: str = "shop") -> str:
        """Reads so many records as a member of the group, commits them, and returns who the member is: nobody takes it
        out of the group while the tests go on, though it asks for nothing any more."""
        members = f"groups/{quote(group, safe='')}/members"
        asked = {"topics": [topic], "reset": "earliest", "client_id": client_id, "max_idle_ms": MAX_IDLE_MS}
        joined = self.rest.post(members, asked, status=201)
        member = f"{members}/{joined['member_id']}"
        seen = 0

        def has_read() -> bool:
            nonlocal seen
            answer = self.rest.post(f"{member}/poll", {"limit": count - seen, "max_wait_ms": 1000})
            seen += len(answer["records"])
            return seen >= count

        eventually(has_read, f"{count} records for {group}")
        self.rest.post(f"{member}/commit", {}, status=204)
        return member

    def has_topic(self, name: str) -> bool:
        return self.rest.call("GET", f"topics/{name}").status == 200


def order(number: int) -> dict[str, Any]:
    customer = f"customer-{number % _CUSTOMERS}"
    return {
        "key": customer,
        "value": {"order": number, "customer": customer, "amount": number * 7 % 100, "paid": number % 3 == 0},
        "headers": [{"name": "source", "value": "shop"}],
        "partition": number % PARTITIONS,
        "timestamp_ms": _FIRST_ORDER_MS + number * 1000,
    }


@contextmanager
def shop(directory: Path, *options: str) -> Iterator[Shop]:
    """Filled, and with every order in the object store; what is produced later may be in the WAL."""
    state_dir = directory / "state"
    brisk = ("--segment-bytes", "8KiB", "--segment-age", "300ms", "--retention-interval", "24h")
    with Node(directory / "data", *brisk, *options, env={STATE_VARIABLE: str(state_dir)}) as node:
        shop = Shop(node=node, rest=RestCaller(node.http), state_dir=state_dir)
        _fill(shop)
        storage = EmbeddedStorage(node.data_dir)
        eventually(lambda: committed_records(storage, ORDERS) >= ORDER_COUNT, "the orders in segments", pause=0.1)
        with _running_pipeline(shop):
            yield shop


def _fill(shop: Shop) -> None:
    shop.create_topic(ORDERS, PARTITIONS)
    half = ORDER_COUNT // 2
    shop.produce(ORDERS, [order(number) for number in range(half)])
    shop.produce(ORDERS, [order(number) for number in range(half, ORDER_COUNT)])
    shop.rest.delete(shop.read_with(BILLING, ORDERS, ORDER_COUNT // 3))
    shop.read_with(AUDIT, ORDERS, ORDER_COUNT)
    _fill_hostile(shop)
    _fill_dead_letters(shop)


def _fill_hostile(shop: Shop) -> None:
    shop.create_topic(HOSTILE)
    headers = [{"name": hostile.HEADER_NAME, "value": hostile.HEADER_VALUE}]
    shop.produce(HOSTILE, [{"key": hostile.KEY, "value": hostile.VALUE, "headers": headers}])
    shop.produce(HOSTILE, [{"value": hostile.MARKUP}])
    raw = b64encode(hostile.BYTES).decode()
    shop.produce(HOSTILE, [{"key": raw, "value": raw}], key_format="base64", value_format="base64")
    shop.read_with(hostile.GROUP, HOSTILE, 1, client_id=hostile.CLIENT)


def _fill_dead_letters(shop: Shop) -> None:
    """As a pipeline writes them: the failed record, with the why and whence in headers."""
    shop.create_topic(DEAD_LETTERS)
    whence = {"error": LETTER_ERROR, "pipeline": PIPELINE, "step": ORDERS, "topic": ORDERS, "partition": "1"}
    headers = [{"name": f"streamhouse.{name}", "value": value} for name, value in whence.items()]
    place = [{"name": "streamhouse.offset", "value": "17"}]
    letters = [{"key": "customer-9", "value": "amount=12;", "headers": headers + place}]
    letters.append({"key": hostile.KEY, "value": hostile.MARKUP, "headers": headers})
    shop.produce(DEAD_LETTERS, letters, value_format="text")


@contextmanager
def _running_pipeline(shop: Shop) -> Iterator[None]:
    """One whose run holds its lock, and one that failed, as `streamhouse pipeline run` registers them."""
    registry = Registry(state_directory({STATE_VARIABLE: str(shop.state_dir)}))
    query = QueryState(
        query="revenue_per_minute", guarantee="exactly-once", batch_id=41, at="2026-01-05T12:00:00Z",
        rows_per_second=1234.5, batch_ms=180, lag={ORDERS: 7}, input_rows=52_000, output_rows=866, late_rows=3,
    )  # fmt: skip
    common = {"master": "local[2]", "pid": os.getpid(), "started_at_ms": _FIRST_ORDER_MS}
    running = RunRecord(
        name=PIPELINE, file="revenue.yaml", updated_at_ms=_IN_A_YEAR_MS, queries=[query],
        dead_letters=2, dead_letter_topic=DEAD_LETTERS, **common,
    )  # fmt: skip
    failed = RunRecord(
        name=FAILED_PIPELINE, file="export.yaml", updated_at_ms=_FIRST_ORDER_MS + 1000, state="failed",
        error=f"no such column {hostile.MARKUP}", **common,
    )  # fmt: skip
    with registry.register(FAILED_PIPELINE) as registration:
        registration.write(failed)
    with registry.register(PIPELINE) as registration:
        registration.write(running)
        yield


def _dotted(config: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in config.items()}


def pretty(value: object) -> str:
    """As the console shows JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)
