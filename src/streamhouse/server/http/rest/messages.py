"""A topic's messages as a console shows them: newest or oldest first over all partitions, filtered. One request looks
at so many records and no more, and says where the next is to go on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge

from streamhouse.broker.records import LATEST, RecordDoor
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput, NotFound, Unavailable
from streamhouse.model.topic import Topic
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.filters import filter_of
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits
from streamhouse.server.http.rest.reading import size_bytes
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.row_messages import made_of
from streamhouse.wire.http.rest.positions import Range, ranges_of, ranges_text
from streamhouse.wire.http.rest.records import MessagesAnswer, MessagesQuery, Unreadable

_MAX_SCANNED = 20_000
_MIN_SCANNED = 200
_MAX_UNREADABLE = 100
_MIN_UNREADABLE = 10
_MAX_ANSWER_BYTES = 4 * 2**20
_MIN_MATCH_BYTES = 256 * 1024
_AT_ONCE = 8
"""Partitions that one request reads at a time."""
_ANSWER_EXAMPLE = {
    "records": [
        {
            "partition": 1,
            "offset": 17,
            "timestamp_ms": 1767225600000,
            "key": "customer-7",
            "key_format": "text",
            "value": {"customer": {"id": 7}, "amount": 3},
            "value_format": "json",
            "headers": [],
        }
    ],
    "scanned_records": 500,
    "next": "0:0-41,1:0-17",
    "unreadable": [],
}


def add_messages(rest: Rest, context: DoorContext) -> None:
    rest.route(
        "GET",
        f"{API}/topics/{{topic}}/messages",
        _Messages(context.records).search,
        summary="Search a topic's records",
        description="By key, by a field of JSON values and by time. A request looks at a bounded number of records: "
        "ask again with `next`, and everything else the same, until it is null. A time range reaches from the first "
        "record at or after `from_ms` to the first at or after `to_ms`, in each partition.",
        tag="records",
        query=MessagesQuery,
        answer=MessagesAnswer,
        errors=(InvalidInput, NotFound, Unavailable),
        answer_example=_ANSWER_EXAMPLE,
    )


class _Messages:
    def __init__(self, door: RecordDoor) -> None:
        self._door = door

    async def search(self, call: Call) -> MessagesAnswer:
        query: MessagesQuery = call.query
        wanted = filter_of(query, from_ms=query.from_ms, to_ms=query.to_ms)
        topic = await self._door.topic(call.path["topic"])
        ranges = await self._ranges(topic, query) if query.next is None else _given_ranges(topic, query.next)
        share = max(1, len(ranges))
        limits = ScanLimits(
            matches=query.limit,
            match_bytes=max(_MIN_MATCH_BYTES, _MAX_ANSWER_BYTES // share),
            scanned_records=max(_MIN_SCANNED, _MAX_SCANNED // share),
            unreadable=max(_MIN_UNREADABLE, _MAX_UNREADABLE // share),
        )
        scans = [
            PartitionScan(self._door, topic, partition, left, wanted, limits) for partition, left in ranges.items()
        ]
        is_newest_first = query.order == "newest"
        await self._run(scans, newest_first=is_newest_first)
        chosen = list(_chosen(scans, query.limit, newest_first=is_newest_first))
        return await made_of(
            [record for _, record in chosen],
            lambda: _answer(query, scans, chosen, newest_first=is_newest_first),
        )

    async def _run(self, scans: Sequence[PartitionScan], *, newest_first: bool) -> None:
        places = asyncio.Semaphore(_AT_ONCE)

        async def run(scan: PartitionScan) -> None:
            async with places:
                await (scan.newest_first() if newest_first else scan.oldest_first())

        await asyncio.gather(*map(run, scans))

    async def _ranges(self, topic: Topic, query: MessagesQuery) -> dict[int, Range]:
        if query.partition is not None and query.partition >= topic.partition_count:
            raise NotFound(f"there is no partition {query.partition} of {topic.name}")
        partitions = range(topic.partition_count) if query.partition is None else [query.partition]
        ranges = await asyncio.gather(*(self._range(topic, partition, query) for partition in partitions))
        return dict(zip(partitions, ranges, strict=True))

    async def _range(self, topic: Topic, partition: int, query: MessagesQuery) -> Range:
        log = await self._door.offset_at(topic, partition, LATEST)
        start, end = log.log_start_offset, log.high_watermark
        if query.from_ms is not None:
            found = await self._door.offset_at(topic, partition, query.from_ms)
            start = end if found.offset is None else found.offset
        if query.to_ms is not None:
            found = await self._door.offset_at(topic, partition, query.to_ms)
            end = end if found.offset is None else found.offset
        return start, end


def _given_ranges(topic: Topic, text: str) -> dict[int, Range]:
    ranges = ranges_of(text)
    if max(ranges) >= topic.partition_count:
        raise InvalidInput("there is no such place to go on", hint="give `next` as it was answered")
    return ranges


def _answer(
    query: MessagesQuery,
    scans: Sequence[PartitionScan],
    chosen: Sequence[tuple[int, Record]],
    *,
    newest_first: bool,
) -> MessagesAnswer:
    taken = Counter(partition for partition, _ in chosen)
    left = {scan.partition: scan.left_after(taken[scan.partition], newest_first=newest_first) for scan in scans}
    left = {partition: (start, end) for partition, (start, end) in left.items() if start < end}
    return MessagesAnswer(
        records=[query.show(partition, record) for partition, record in chosen],
        scanned_records=sum(scan.scanned_records for scan in scans),
        next=ranges_text(left) if left else None,
        unreadable=[Unreadable.of(scan.partition, problem) for scan in scans for problem in scan.unreadable.values()],
    )


def _chosen(scans: Sequence[PartitionScan], limit: int, *, newest_first: bool) -> Iterator[tuple[int, Record]]:
    """By time over all partitions, and in each in the order of its offsets, whatever the times are."""
    sign = -1 if newest_first else 1
    found = ([(scan.partition, record) for record in scan.matches] for scan in scans)
    left_bytes = _MAX_ANSWER_BYTES
    for index, (partition, record) in enumerate(merge(*found, key=lambda each: sign * each[1].timestamp_ms)):
        left_bytes -= size_bytes(record)
        if index == limit or (index and left_bytes < 0):
            return
        yield partition, record
