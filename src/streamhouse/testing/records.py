"""Records in and out of a test's broker without a client: what a test writes for its service, and what it finds."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from streamhouse.app.node import Node
from streamhouse.broker.records import EARLIEST, NewRecord, RecordDoor, StoredRecord
from streamhouse.client.api_records import Headers, Record, header_bytes, read_record, timestamp_of
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.serde import Format, JsonSerde, serde_of
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange, StreamHouseError
from streamhouse.model.names import check_topic_name
from streamhouse.model.setting_values import did_you_mean
from streamhouse.runtime.clock import Clock
from streamhouse.testing.waiting import Wanted, wait_until

_KEYWORDS = ("value", "key", "headers", "partition", "timestamp")
_READ_AT_ONCE = 10_000
_LOOK_EVERY_MS = 5
_SHOWN = 10
_SHOWN_CHARACTERS = 200
_JSON: JsonSerde[Any] = JsonSerde()


class Records:
    """On the broker's own loop, past its Kafka port: faults of that port are for the service, and not for its test."""

    def __init__(self, node: Node, clock: Clock) -> None:
        self._node = node
        self._clock = clock
        self._door = RecordDoor(
            node.broker.topics,
            node.forwarder,
            clock,
            node.engine.threads,
            auto_create_topics=node.settings.auto_create_topics,
        )

    async def produce(self, topic: str, records: Sequence[NewRecord]) -> list[StoredRecord]:
        check_topic_name(topic)
        found = await self._door.topic_to_write(topic)
        stored: list[StoredRecord] = []
        for outcome in await self._door.append(found, records):
            if isinstance(outcome, StreamHouseError):
                raise outcome
            stored.append(outcome)
        return stored

    async def read(
        self,
        topic: str,
        *,
        partition: int | None,
        count: int | None,
        timeout_s: float,
        value_format: Format,
        key_format: Format,
    ) -> list[Record[Any]]:
        keys, values = serde_of(key_format), serde_of(value_format)
        found: dict[int, list[ConsumedRecord]] = {}
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        while True:
            await self._read_on(topic, partition, found, must_be_there=count is None)
            total = sum(map(len, found.values()))
            if count is None or total >= count:
                # By time, without changing the order of a partition.
                in_order = heapq.merge(*(found[each] for each in sorted(found)), key=lambda record: record.timestamp_ms)
                return [read_record(record, keys, values) for record in in_order]
            if asyncio.get_running_loop().time() > deadline_s:
                raise AssertionError(
                    f"after {timeout_s:g} s there are {total} records of {topic!r}, and not {count}: "
                    + self._shown(topic, found)
                )
            await self._clock.sleep_ms(_LOOK_EVERY_MS)

    async def wait(self, wanted: Wanted, timeout_s: float) -> None:
        await wait_until(self._node, self._clock, wanted, timeout_s)

    async def _read_on(
        self, topic: str, partition: int | None, found: dict[int, list[ConsumedRecord]], *, must_be_there: bool
    ) -> None:
        """What has come since the last look."""
        known = self._node.broker.topics.find(topic)
        if known is None or (partition is not None and partition >= known.partition_count):
            if must_be_there:
                raise NotFound(f"there is no {topic!r}, or no such partition: {self._topics()}")
            return
        for number in range(known.partition_count) if partition is None else [partition]:
            records = found.setdefault(number, [])
            offset = records[-1].offset + 1 if records else EARLIEST
            while True:
                try:
                    if offset == EARLIEST:
                        offset = (await self._door.offset_at(known, number, EARLIEST)).log_start_offset
                    run = await self._door.read(known, number, offset, max_records=_READ_AT_ONCE)
                except OffsetOutOfRange:  # retention was quicker
                    offset = EARLIEST
                    continue
                records += (
                    ConsumedRecord(
                        topic=topic,
                        partition=number,
                        offset=row.offset,
                        timestamp_ms=row.timestamp_ms,
                        key=row.key,
                        value=row.value,
                        headers=row.headers,
                    )
                    for row in run.records
                )
                if run.next_offset == offset or run.next_offset >= run.high_watermark:
                    break
                offset = run.next_offset

    def _shown(self, topic: str, found: Mapping[int, Sequence[ConsumedRecord]]) -> str:
        if not found:
            return f"there is no such topic; {self._topics()}"
        records = [record for number in sorted(found) for record in found[number]]
        lines = [
            f"{record.partition}@{record.offset} {_short(record.key)}: {_short(record.value)}"
            for record in records[-_SHOWN:]
        ]
        left_out = f"… ({len(records) - _SHOWN} before)\n  " if len(records) > _SHOWN else ""
        return "\n  " + left_out + "\n  ".join(lines) if lines else "it is empty"

    def _topics(self) -> str:
        names = [topic.name for topic in self._node.broker.topics]
        return f"the topics are {', '.join(names)}" if names else "the broker has no topic"


def new_record(
    value: object = None,
    *,
    key: object = None,
    headers: Headers | None = None,
    partition: int | None = None,
    timestamp: datetime | int | None = None,
) -> NewRecord:
    return NewRecord(
        value=_as_bytes(value),
        key=_as_bytes(key),
        headers=header_bytes(headers or ()),
        partition=partition,
        timestamp_ms=timestamp_of(timestamp),
    )


def new_records(records: Iterable[object]) -> list[NewRecord]:
    """Of values, and of mappings with the keywords of `new_record`."""
    return [
        new_record(**_keywords(record)) if isinstance(record, Mapping) else new_record(record) for record in records
    ]


def _keywords(record: Mapping[Any, Any]) -> dict[str, Any]:
    for name in record:
        if name not in _KEYWORDS:
            hint = did_you_mean(str(name), _KEYWORDS, "a value that is a mapping goes into {'value': …}")
            raise InvalidInput(f"a record has no {name!r}, only {', '.join(_KEYWORDS)}", hint=hint)
    return dict(record)


def _as_bytes(value: object) -> bytes | None:
    """Bytes are what they are, text is UTF-8, None is Kafka's null; everything else is JSON."""
    match value:
        case None:
            return None
        case str():
            return value.encode()
        case bytes() | bytearray() | memoryview():
            return bytes(value)
    return _JSON.encode(value)


def _short(data: bytes | None) -> str:
    shown = repr(data)
    return shown if len(shown) <= _SHOWN_CHARACTERS else f"{shown[:_SHOWN_CHARACTERS]}…"
