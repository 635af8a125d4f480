"""The pipeline's results, of the topic and of the Delta table, and the same worked out from the orders themselves."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from demo.failure import DemoFailed
from demo.orders import Event
from demo.quiet import QUIET

RESULT_TOPIC = "revenue"
_STALL_SECONDS = 30.0

ResultRow: TypeAlias = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sales:
    """Of one region and currency, over so many minutes in which there were any."""

    minutes: int
    orders: int
    cents: int


def read_topic(bootstrap: str) -> list[ResultRow]:
    """The last word on every minute, region and currency, as a consumer of the compacted topic would have it."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "demo",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            **QUIET,
        }
    )
    try:
        partitions = consumer.list_topics(RESULT_TOPIC, timeout=_STALL_SECONDS).topics[RESULT_TOPIC].partitions
        consumer.assign([TopicPartition(RESULT_TOPIC, partition, OFFSET_BEGINNING) for partition in partitions])
        latest: dict[bytes, ResultRow] = {}
        unfinished = set(partitions)
        while unfinished:
            message = consumer.poll(_STALL_SECONDS)
            if message is None:
                raise DemoFailed("the pipeline's result cannot be read")
            problem = message.error()
            if problem is None:
                latest[message.key() or b""] = json.loads(message.value() or b"{}")
            elif problem.code() == KafkaError._PARTITION_EOF:
                unfinished.discard(message.partition())
            else:
                raise DemoFailed(f"the pipeline's result cannot be read: {problem.str()}")
        return list(latest.values())
    finally:
        consumer.close()


def read_table(path: Path) -> list[ResultRow]:
    from deltalake import DeltaTable

    return [{**row, "minute": str(row["minute"])} for row in DeltaTable(path).to_pyarrow_table().to_pylist()]


def by_minute(rows: Sequence[ResultRow]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Orders and cents of each minute, region and currency; what is there twice counts twice."""
    sums: defaultdict[tuple[str, str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        minute = str(row["minute"])[: len("2026-11-01T08:00")].replace(" ", "T")
        key = minute, str(row["region"]), str(row["currency"])
        orders, cents = sums[key]
        sums[key] = orders + int(row["orders"]), cents + round(float(row["revenue"]) * 100)
    return dict(sums)


def by_region(rows: Sequence[ResultRow]) -> dict[tuple[str, str], Sales]:
    minutes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    orders: defaultdict[tuple[str, str], int] = defaultdict(int)
    cents: defaultdict[tuple[str, str], int] = defaultdict(int)
    for row in rows:
        key = str(row["region"]), str(row["currency"])
        minutes[key].add(str(row["minute"]))
        orders[key] += int(row["orders"])
        cents[key] += round(float(row["revenue"]) * 100)
    return {key: Sales(minutes=len(minutes[key]), orders=orders[key], cents=cents[key]) for key in sorted(minutes)}


def expected_of(events: Sequence[Event]) -> list[ResultRow]:
    """A row for each sale, from the orders themselves, as the pipeline's SQL defines it."""
    rows: list[ResultRow] = []
    for event in events:
        order = json.loads(event.value)
        if order["status"] != "cancelled":
            minute = order["placed_at"][: len("2026-11-01T08:00")]
            row = {"region": order["country"], "currency": order["currency"], "minute": minute}
            rows.append({**row, "orders": 1, "revenue": order["total_cents"] / 100})
    return rows
