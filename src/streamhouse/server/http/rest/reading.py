"""Records out: those of one partition from an offset or a time on, waiting for the first if need be."""

from __future__ import annotations

from itertools import accumulate

from streamhouse.broker.records import EARLIEST, ReadRecords, RecordDoor
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange, Unavailable, UnreadableRecords
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.waiting import Waiting
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.records import RecordsAnswer, RecordsQuery

_LOOK_UP_MS = 1_000
"""How long a wait goes on before it is looked whether the client is still there."""
_HEADER_BYTES = len('{"name":"","value":"","format":"text"},')
_ANSWER_EXAMPLE = {
    "records": [
        {
            "partition": 0,
            "offset": 7,
            "timestamp_ms": 1767225600000,
            "key": "customer-7",
            "key_format": "text",
            "value": {"amount": 3},
            "value_format": "json",
            "headers": [{"name": "trace", "value": "a1b2", "format": "text"}],
        }
    ],
    "next_offset": 8,
    "log_start_offset": 0,
    "high_watermark": 8,
}


def add_reading(rest: Rest, context: DoorContext, waiting: Waiting) -> None:
    reading = _Reading(context.records, context.broker.clock, waiting)
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/partitions/{{partition}}/records",
        reading.read,
        summary="Read a partition's records from an offset or a time on",
        description="To read on, ask again from `next_offset`, with `max_wait_ms` to wait for what is not there yet. "
        "Records that cannot be given as rows are a problem of their own, whose `next_offset` is behind them.",
        tag="records",
        query=RecordsQuery,
        answer=RecordsAnswer,
        errors=(InvalidInput, NotFound, OffsetOutOfRange, UnreadableRecords, Unavailable),
        answer_example=_ANSWER_EXAMPLE,
    )


class _Reading:
    def __init__(self, door: RecordDoor, clock: Clock, waiting: Waiting) -> None:
        self._door = door
        self._clock = clock
        self._waiting = waiting

    async def read(self, call: Call) -> RecordsAnswer:
        query: RecordsQuery = call.query
        partition = call.number("partition")
        topic = await self._door.topic(call.path["topic"], partition)
        offset = await self._start(topic, partition, query)
        if query.max_wait_ms == 0:
            page = await self._page(topic, partition, offset, query, 0)
        else:
            with self._waiting.place():
                page = await self._wait(call, topic, partition, offset)
        records, next_offset = _within(query.max_bytes, page)
        return RecordsAnswer(
            records=await made_of(records, lambda: [query.show(partition, record) for record in records]),
            next_offset=next_offset,
            log_start_offset=page.log_start_offset,
            high_watermark=page.high_watermark,
        )

    async def _start(self, topic: Topic, partition: int, query: RecordsQuery) -> int:
        if query.offset is not None and query.timestamp_ms is not None:
            raise InvalidInput("both offset and timestamp_ms are given", hint="give one of them")
        if query.offset is not None:
            return query.offset
        time_ms = EARLIEST if query.timestamp_ms is None else query.timestamp_ms
        found = await self._door.offset_at(topic, partition, time_ms)
        return found.high_watermark if found.offset is None else found.offset

    async def _wait(self, call: Call, topic: Topic, partition: int, offset: int) -> ReadRecords:
        query: RecordsQuery = call.query
        deadline_ms = self._clock.monotonic_ms() + query.max_wait_ms
        while True:
            left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            page = await self._page(topic, partition, offset, query, min(left_ms, _LOOK_UP_MS))
            offset = page.next_offset
            if page.records or left_ms == 0 or self._waiting.is_ending or await call.request.is_disconnected():
                return page

    async def _page(self, topic: Topic, partition: int, offset: int, query: RecordsQuery, wait_ms: int) -> ReadRecords:
        return await self._door.read(
            topic, partition, offset, max_records=query.limit, max_bytes=query.max_bytes, max_wait_ms=wait_ms
        )


def _within(max_bytes: int, page: ReadRecords) -> tuple[list[Record], int]:
    """What was read was bounded as it is stored, which compressed may be a thousandth. One record is always given."""
    ends = accumulate(size_bytes(record) for record in page.records)
    fit = sum(1 for end in ends if end <= max_bytes)
    if fit >= len(page.records):
        return page.records, page.next_offset
    records = page.records[: max(fit, 1)]
    return records, records[-1].offset + 1


def size_bytes(record: Record) -> int:
    """About as JSON has it: of a header, the names and marks around it are most."""
    headers = sum(_HEADER_BYTES + len(name) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
