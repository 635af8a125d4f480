"""What a search of a topic's records goes over: ranges of offsets in its partitions, and what it wants of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamhouse.broker.records import LATEST, RecordDoor
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.topic import Topic
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
    ranges: Mapping[int, Range]
    """Of each partition, what is to be looked at."""
    wanted: RecordFilter
    newest_first: bool

    @classmethod
    async def open(cls, door: RecordDoor, name: str, query: SearchQuery) -> Search:
        """What is wrong with the query is raised here."""
        wanted = filter_of(query, from_ms=query.from_ms, to_ms=query.to_ms)
        topic = await door.topic(name)
        ranges = await _ranges(door, topic, query) if query.next is None else _given_ranges(topic, query.next)
        return cls(door=door, topic=topic, ranges=ranges, wanted=wanted, newest_first=query.order == "newest")

    def scan(self, partition: int, left: Range, limits: ScanLimits) -> PartitionScan:
        return PartitionScan(self.door, self.topic, partition, left, self.wanted, limits)

    @property
    def held_bytes(self) -> int:
        """Of each partition."""
        return _HELD_BYTES // min(_AT_ONCE, max(1, len(self.ranges)))

    async def run(self, scans: Iterable[PartitionScan], ended: Callable[[PartitionScan], None] | None = None) -> None:
        """Each of those that `ended` is told as it does."""
        places = asyncio.Semaphore(_AT_ONCE)

        async def run(scan: PartitionScan) -> None:
            async with places:
                await scan.run(newest_first=self.newest_first)
            if ended is not None:
                ended(scan)

        await asyncio.gather(*map(run, scans))


async def _ranges(door: RecordDoor, topic: Topic, query: SearchQuery) -> dict[int, Range]:
    if query.partition is not None and query.partition >= topic.partition_count:
        raise NotFound(f"there is no partition {query.partition} of {topic.name}")
    partitions = range(topic.partition_count) if query.partition is None else [query.partition]
    ranges = await asyncio.gather(*(_range(door, topic, partition, query) for partition in partitions))
    return dict(zip(partitions, ranges, strict=True))


async def _range(door: RecordDoor, topic: Topic, partition: int, query: SearchQuery) -> Range:
    log = await door.offset_at(topic, partition, LATEST)
    start, end = log.log_start_offset, log.high_watermark
    if query.from_ms is not None:
        found = await door.offset_at(topic, partition, query.from_ms)
        start = end if found.offset is None else found.offset
    if query.to_ms is not None:
        found = await door.offset_at(topic, partition, query.to_ms)
        end = end if found.offset is None else found.offset
    return start, end


def _given_ranges(topic: Topic, text: str) -> dict[int, Range]:
    ranges = ranges_of(text)
    if max(ranges) >= topic.partition_count:
        raise InvalidInput("there is no such place to go on", hint="give `next` as it was answered")
    return ranges
