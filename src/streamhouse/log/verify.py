"""Checks a whole cluster from outside, while it runs: logs have no seams (I3), rows and objects agree (I7).

Nothing stands still meanwhile. What is read in several steps is read again until it did not change in between, and a
row whose object is missing is a violation only if the row is still there afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from streamhouse.format.object_keys import (
    SEGMENTS_PREFIX,
    WAL_PREFIX,
    parse_segment_key,
    parse_wal_object_key,
    segment_prefix,
)
from streamhouse.log.object_content import range_problem, segment_problem
from streamhouse.log.seams import find_inner_seams, find_seams
from streamhouse.log.verify_report import Invariant, Report
from streamhouse.metadata.cluster import Placement
from streamhouse.metadata.store import MetadataStore, SegmentRow
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.objects.store import ObjectInfo, ObjectStore

Item = TypeVar("Item")
Result = TypeVar("Result")

_PARTITIONS_AT_ONCE = 200
_REQUESTS_AT_ONCE = 8
_SNAPSHOT_TRIES = 10
_ALL_GARBAGE = 1_000_000
_MISSING = "is not there"
_DOOMED = "is registered and yet to be removed as garbage"
# Sorts after every character that a key may have.
_AFTER_ALL_KEYS = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """The rows of one partition; `is_settled`: nothing moved while they were read."""

    placement: Placement
    segments: list[SegmentRow]
    ranges: list[WalRange]
    is_settled: bool

    @property
    def name(self) -> str:
        return f"{self.placement.topic}/{self.placement.partition.partition}"


class Verification:
    """One run. `deep` reads every object and checks its content; without it, sizes are compared."""

    def __init__(
        self,
        *,
        metadata: MetadataStore,
        objects: ObjectStore,
        oldest_upload_ms: int,
        deep: bool,
        checked: Callable[[int], None] = lambda offsets: None,
        objects_at_once: int = _REQUESTS_AT_ONCE,
        most_findings: int | None = None,
    ) -> None:
        """Objects younger than `oldest_upload_ms` may be on their way to be registered. `checked` is told how many
        offsets were looked at, again and again. `objects_at_once`: so many whole objects are in memory at a time."""
        self._metadata = metadata
        self._objects = objects
        self._oldest_upload_ms = oldest_upload_ms
        self._deep = deep
        self._checked = checked
        self._garbage: Set[str] = frozenset()
        self._orphans: list[str] = []
        self._topics: dict[UUID, str] = {}
        self._reading = asyncio.Semaphore(objects_at_once)
        self._report = Report(most_findings=most_findings)

    async def run(self, placements: Sequence[Placement]) -> Report:
        """Check these partitions, which should be all that there are."""
        self._garbage = set(await self._metadata.list_garbage(0, _ALL_GARBAGE))
        # In the order of the keys, so that rows and one listing of the bucket can be walked side by side.
        self._topics = {placement.partition.topic_id: placement.topic for placement in placements}
        known = {placement.partition: placement for placement in placements}
        partitions = sorted(known, key=_prefix)
        listing = _Listing(self._objects.list(SEGMENTS_PREFIX))
        for start in range(0, len(partitions), _PARTITIONS_AT_ONCE):
            chunk = partitions[start : start + _PARTITIONS_AT_ONCE]
            logs, known = await self._read_logs(chunk, known)
            listed = await listing.up_to(_prefix(chunk[-1]) + _AFTER_ALL_KEYS)
            for log in logs:
                self._check_seams(log)
                await self._check_segments(log, listed)
            self._gather_orphans(listed, {row.object_key for log in logs for row in log.segments})
        self._gather_orphans(await listing.up_to(None), frozenset())
        await self._check_wal_objects(partitions)
        await self._note_orphans()
        return self._report

    async def _read_logs(
        self, partitions: Sequence[TopicPartition], before: dict[TopicPartition, Placement]
    ) -> tuple[list[_Log], dict[TopicPartition, Placement]]:
        """Those that still exist, in the order asked, and the placements of now."""
        logs: dict[TopicPartition, _Log] = {}
        moving = list(partitions)
        for _ in range(_SNAPSHOT_TRIES):
            segments = await self._metadata.load_segments(moving)
            ranges = await self._metadata.load_wal_ranges(moving)
            after = {placement.partition: placement for placement in await self._metadata.list_placements()}
            for partition, its_segments, its_ranges in zip(moving, segments, ranges, strict=True):
                if partition in after:
                    logs[partition] = _Log(
                        placement=after[partition],
                        segments=its_segments,
                        ranges=its_ranges,
                        is_settled=_ends(before[partition]) == _ends(after[partition]),
                    )
            before = after
            moving = [partition for partition in moving if partition in after and not logs[partition].is_settled]
            if not moving:
                break
        return [logs[partition] for partition in partitions if partition in logs and partition in before], before

    def _check_seams(self, log: _Log) -> None:
        if log.is_settled:
            seams = find_seams(log.placement, log.segments, log.ranges)
        else:
            seams = find_inner_seams(log.placement.epoch, log.segments, log.ranges)
            self._report.note(
                Invariant.SEAMLESS, log.name, "grew each time that it was read, so its ends were not checked"
            )
        for seam in seams:
            self._report.violation(Invariant.SEAMLESS, log.name, seam)
        self._report.partitions += 1

    async def _check_segments(self, log: _Log, listed: Mapping[str, ObjectInfo]) -> None:
        async def check(row: SegmentRow) -> tuple[SegmentRow, str | None]:
            problem = await self._segment_problem(row, listed.get(row.object_key))
            self._checked(row.end_offset - row.base_offset)
            return row, problem

        self._report.segments += len(log.segments)
        suspects = [(row, problem) for row, problem in await _each(check, log.segments) if problem is not None]
        if not suspects:
            return
        (current,) = await self._metadata.load_segments([log.placement.partition])
        registered = {row.object_key for row in current}
        for row, problem in suspects:
            if row.object_key in registered:
                offsets = f"{row.base_offset} to {row.end_offset - 1}"
                self._report.violation(
                    Invariant.AGREEMENT, log.name, f"segment {offsets}: object {row.object_key} {problem}"
                )

    async def _segment_problem(self, row: SegmentRow, info: ObjectInfo | None) -> str | None:
        if row.object_key in self._garbage:
            return _DOOMED
        info = info or await self._head(row.object_key)
        if info is None:
            return _MISSING
        if info.size_bytes != row.size_bytes:
            return f"has {info.size_bytes} bytes instead of {row.size_bytes}"
        if not self._deep:
            return None
        async with self._reading:
            try:
                data = await self._objects.get(row.object_key)
            except NotFound:
                return _MISSING
            self._report.bytes_read += len(data)
            # In a thread: whoever else is on the loop must not wait until a large one is read through.
            return await asyncio.to_thread(segment_problem, row, data)

    async def _check_wal_objects(self, partitions: Sequence[TopicPartition]) -> None:
        # In this order: an object that is retired in between is missing from the second, and nobody's any more.
        ranges = await self._ranges_by_object(partitions)
        registered = set(await self._metadata.list_wal_object_keys())
        listed = {info.key: info async for info in self._objects.list(WAL_PREFIX)}

        async def check(key: str) -> tuple[str, list[str]]:
            if key not in registered:
                return key, [f"holds {self._range_name(each)} and is not registered" for each in ranges[key]]
            return key, await self._wal_object_problems(key, ranges.get(key, []), listed.get(key))

        self._report.wal_objects += len(registered)
        suspects = await _each(check, sorted(registered | ranges.keys()))
        if any(problems for _, problems in suspects):
            current = {*(await self._ranges_by_object(partitions)), *(await self._metadata.list_wal_object_keys())}
            for key, problems in suspects:
                for problem in problems if key in current else ():
                    self._report.violation(Invariant.AGREEMENT, f"WAL object {key}", problem)
        self._gather_orphans(listed, registered | ranges.keys())

    async def _wal_object_problems(self, key: str, ranges: Sequence[WalRange], info: ObjectInfo | None) -> list[str]:
        if key in self._garbage:
            return [_DOOMED]
        info = info or await self._head(key)
        if info is None:
            return [_MISSING]
        if self._deep and ranges:
            async with self._reading:
                try:
                    data = await self._objects.get(key)
                except NotFound:
                    return [_MISSING]
                self._report.bytes_read += len(data)
                problems = await asyncio.to_thread(lambda: [range_problem(each, data=data) for each in ranges])
        else:
            problems = [_cut_off(each, object_bytes=info.size_bytes) for each in ranges]
        self._checked(sum(each.end_offset - each.base_offset for each in ranges))
        found = zip(ranges, problems, strict=True)
        return [f"{self._range_name(each)} {problem}" for each, problem in found if problem is not None]

    async def _ranges_by_object(self, partitions: Sequence[TopicPartition]) -> dict[str, list[WalRange]]:
        by_object: dict[str, list[WalRange]] = {}
        for start in range(0, len(partitions), _PARTITIONS_AT_ONCE):
            for ranges in await self._metadata.load_wal_ranges(partitions[start : start + _PARTITIONS_AT_ONCE]):
                for each in ranges:
                    by_object.setdefault(each.object_key, []).append(each)
        return by_object

    def _gather_orphans(self, listed: Mapping[str, ObjectInfo], referenced: Set[str]) -> None:
        self._orphans += [
            key
            for key, info in listed.items()
            if key not in referenced and info.modified_at_ms < self._oldest_upload_ms and _is_ours(key)
        ]

    async def _note_orphans(self) -> None:
        if not self._orphans:
            return
        # Now, not before: what lost its row during the run is garbage by now, or removed already.
        garbage = set(await self._metadata.list_garbage(0, _ALL_GARBAGE))
        for key in self._orphans:
            if key not in garbage and await self._head(key) is not None:
                self._report.note(Invariant.AGREEMENT, f"object {key}", "is referred to by nothing")

    def _range_name(self, wal_range: WalRange) -> str:
        topic, number = self._topics[wal_range.partition.topic_id], wal_range.partition.partition
        return f"{topic}/{number} {wal_range.base_offset} to {wal_range.end_offset - 1}"

    async def _head(self, key: str) -> ObjectInfo | None:
        try:
            return await self._objects.head(key)
        except NotFound:
            return None


class _Listing:
    """Objects in the order of their keys, handed out piece by piece, so that no more than a piece is in memory."""

    def __init__(self, objects: AsyncIterator[ObjectInfo]) -> None:
        self._objects = objects
        self._next: ObjectInfo | None = None

    async def up_to(self, last_key: str | None) -> dict[str, ObjectInfo]:
        """The next ones, with keys up to the last; None: all that are left."""
        piece: dict[str, ObjectInfo] = {}
        while True:
            info = self._next or await anext(self._objects, None)
            self._next = info
            if info is None or (last_key is not None and info.key > last_key):
                return piece
            piece[info.key] = info
            self._next = None


async def _each(work: Callable[[Item], Awaitable[Result]], items: Sequence[Item]) -> list[Result]:
    """All results in order, a few at a time under way."""
    results: list[Result] = []
    for start in range(0, len(items), _REQUESTS_AT_ONCE):
        results += await asyncio.gather(*map(work, items[start : start + _REQUESTS_AT_ONCE]))
    return results


def _prefix(partition: TopicPartition) -> str:
    return segment_prefix(partition.topic_id, partition.partition)


def _ends(placement: Placement) -> tuple[int, int, int]:
    """They only ever grow, so rows that were read between two equal ones are all from one moment."""
    return placement.log_start_offset, placement.committed_end, placement.durable_end


def _cut_off(wal_range: WalRange, object_bytes: int) -> str | None:
    end = wal_range.position + wal_range.size_bytes
    return f"should end at byte {end}, but the object has {object_bytes}" if end > object_bytes else None


def _is_ours(key: str) -> bool:
    """Other objects in the bucket are not ours to judge."""
    return parse_segment_key(key) is not None or parse_wal_object_key(key) is not None
