"""What a search of a topic's records goes over: ranges of offsets in its partitions, and what it wants of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from streamhouse.broker.records import LATEST, RecordDoor
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.topic import Topic
from streamhouse.runtime.tasks import begin
from streamhouse.server.http.rest.filters import RecordFilter, filter_of
from streamhouse.server.http.rest.partition_scan import PartitionScan, ScanLimits
from streamhouse.wire.http.rest.positions import Range, ranges_of
from streamhouse.wire.http.rest.records import SearchQuery

_AT_ONCE = 8
"""Partitions that one request reads at a time."""
_HELD_BYTES = 8 * 2**20
"""Of records that one request has before it, of all these partitions together: about, for at least a page is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    door: RecordDoor
    topic: Topic
    parts: Sequence[Mapping[int, Range]]
    """Of each partition, what is to be looked at: one part after the other."""
    wanted: RecordFilter
    newest_first: bool

    @classmethod
    async def open(cls, door: RecordDoor, name: str, query: SearchQuery) -> Search:
        """What is wrong with the query is raised here."""
        wanted = filter_of(query, from_ms=query.from_ms, to_ms=query.to_ms)
        topic = await door.topic(name)
        parts = await _parts(door, topic, query) if query.next is None else _given_parts(topic, query.next)
        return cls(door=door, topic=topic, parts=parts, wanted=wanted, newest_first=query.order == "newest")

    def scan(self, partition: int, left: Range, limits: ScanLimits) -> PartitionScan:
        return PartitionScan(self.door, self.topic, partition, left, self.wanted, limits)

    @property
    def partition_count(self) -> int:
        """At least one: among so many is shared what a search may take."""
        return max([1, *map(len, self.parts)])

    @property
    def held_bytes(self) -> int:
        """Of each partition."""
        return _HELD_BYTES // min(_AT_ONCE, self.partition_count)

    async def run(self, scans: Iterable[PartitionScan], ended: Callable[[PartitionScan], None] | None = None) -> None:
        """Each of those that `ended` is told as it does."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def run(scan: PartitionScan) -> None:
            async with places:
                await scan.run(newest_first=self.newest_first)
            if ended is not None:
                ended(scan)

        running = [begin(run(scan)) for scan in scans]
        try:
            await asyncio.gather(*running)
        finally:  # where one has failed, the others are of no use
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)


async def _parts(door: RecordDoor, topic: Topic, query: SearchQuery) -> list[dict[int, Range]]:
    if query.partition is not None and query.partition >= topic.partition_count:
        raise NotFound(f"there is no partition {query.partition} of {topic.name}")
    partitions = range(topic.partition_count) if query.partition is None else [query.partition]
    found = await asyncio.gather(*(_range(door, topic, partition, query) for partition in partitions))
    first = {partition: (start, split) for partition, (start, split, _) in zip(partitions, found, strict=True)}
    later = {partition: (split, end) for partition, (_, split, end) in zip(partitions, found, strict=True)}
    return [part for part in map(_not_empty, (first, later)) if part]


async def _range(door: RecordDoor, topic: Topic, partition: int, query: SearchQuery) -> tuple[int, int, int]:
    """Where it begins, where its first part ends, and where it ends. Before the first record at or after `from_ms` none
    is wanted; but behind the first at or after `to_ms` some may be, where times are out of order. Newest first, those
    come last: the others do not wait until all that lies there was looked at."""
    log = await door.offset_at(topic, partition, LATEST)
    start, end = log.log_start_offset, log.high_watermark
    if query.from_ms is not None:
        found = await door.offset_at(topic, partition, query.from_ms)
        start = end if found.offset is None else found.offset
    if query.to_ms is None:
        return start, end, end
    if query.from_ms is not None and query.from_ms >= query.to_ms:
        return start, start, start
    if query.order == "oldest":
        return start, end, end
    found = await door.offset_at(topic, partition, query.to_ms)
    return start, end if found.offset is None else max(start, found.offset), end


def _not_empty(ranges: Mapping[int, Range]) -> dict[int, Range]:
    return {partition: (start, end) for partition, (start, end) in ranges.items() if start < end}


def _given_parts(topic: Topic, text: str) -> Sequence[Mapping[int, Range]]:
    parts = ranges_of(text)
    if max(map(max, parts)) >= topic.partition_count:
        raise InvalidInput("there is no such place to go on", hint="give `next` as it was answered")
    return parts
