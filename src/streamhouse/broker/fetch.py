"""Reading: what is there now, from memory or from segments, or what arrives while the reader waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from streamhouse.log.readable import ReadableLog
from streamhouse.log.reader import SegmentReader
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import NotLeader, OffsetOutOfRange, StreamHouseError
from streamhouse.runtime.measures import Histogram, stopwatch_s


@dataclass(slots=True)
class PartitionRead:
    """One partition of a fetch: what is asked of it, then what was found."""

    leader: ReadableLog
    offset: int
    max_bytes: int
    parts: Sequence[Buffer] = ()
    size_bytes: int = 0
    problem: StreamHouseError | None = None


class Fetcher:
    def __init__(self, reader: SegmentReader) -> None:
        self._reader = reader
        self.segment_read_seconds = Histogram()
        """How long it took to read what is in segments, from the cache or the object store, for one partition."""

    def read_memory(self, reads: Sequence[PartitionRead], max_bytes: int) -> bool:
        """Fill what the tails hold, within max_bytes (but at least one batch); False if segments are needed too."""
        complete = True
        has_data = False
        room = max_bytes
        for read in reads:
            problem = _check(read)
            if problem is not None:
                read.problem = problem
                continue
            leader = read.leader
            if read.offset < leader.tail.start_offset:
                complete = False
                continue
            if read.offset < leader.high_watermark and (room > 0 or not has_data):
                parts = leader.tail.read(read.offset, leader.high_watermark, min(read.max_bytes, room))
                _found(read, parts, is_first=not has_data, room=room)
                room -= read.size_bytes
                has_data = has_data or read.size_bytes > 0
        return complete

    async def read(self, reads: Sequence[PartitionRead], max_bytes: int) -> None:
        """The same, also from segments. A partition that cannot be read has its `problem` set."""
        room = max_bytes
        has_data = False
        for read in reads:
            read.parts, read.size_bytes, read.problem = (), 0, _check(read)
            if read.problem is not None or read.offset >= read.leader.high_watermark or (has_data and room <= 0):
                continue
            wanted_bytes = min(read.max_bytes, room)
            try:
                parts = await self._read_one(read.leader, read.offset, wanted_bytes)
            except StreamHouseError as problem:
                # A segment that retention dropped meanwhile is not damage.
                read.problem = _check(read) or problem
                continue
            _found(read, parts, is_first=not has_data, room=room)
            room -= read.size_bytes
            has_data = has_data or read.size_bytes > 0

    async def _read_one(self, leader: ReadableLog, offset: int, max_bytes: int) -> Sequence[Buffer]:
        if offset < leader.tail.start_offset:
            begun_s = stopwatch_s()
            parts = await self._reader.read(leader, offset, max_bytes)
            self.segment_read_seconds.observe(stopwatch_s() - begun_s)
            if parts:
                return parts
            # Compaction has left nothing there, to the end of the segments: what comes next is in memory.
            offset = leader.committed_end
        return leader.tail.read(offset, leader.high_watermark, max_bytes)

    async def wait(self, reads: Sequence[PartitionRead], min_bytes: int, max_bytes: int, max_wait_ms: int) -> None:
        """Read when min_bytes have come together, or after max_wait_ms, whichever is first."""
        loop = asyncio.get_running_loop()
        changed = asyncio.Event()
        deadline = loop.time() + max_wait_ms / 1000
        for read in reads:
            read.leader.watch(changed.set)
        try:
            while _available_bytes(reads) < min_bytes and all(_check(read) is None for read in reads):
                changed.clear()
                try:
                    async with asyncio.timeout_at(deadline):
                        await changed.wait()
                except TimeoutError:
                    break
        finally:
            for read in reads:
                read.leader.unwatch(changed.set)
        await self.read(reads, max_bytes)


def _available_bytes(reads: Sequence[PartitionRead]) -> int:
    """How much could be read now: exact for what is in memory, and plenty where segments would be read."""
    total = 0
    for read in reads:
        leader = read.leader
        if read.offset < leader.tail.start_offset:
            return 2**31
        if read.offset < leader.high_watermark:
            parts = leader.tail.read(read.offset, leader.high_watermark, read.max_bytes)
            total += sum(len(part) for part in parts)
    return total


def _check(read: PartitionRead) -> StreamHouseError | None:
    leader = read.leader
    if leader.removed:
        return NotLeader(f"this agent no longer leads {leader.topic}/{leader.partition.partition}")
    if read.offset >= leader.high_watermark and not leader.knows_the_end:
        return NotLeader(f"another agent may lead {leader.topic}/{leader.partition.partition} by now")
    if not leader.log_start_offset <= read.offset <= leader.high_watermark:
        return OffsetOutOfRange(
            f"offset {read.offset} of {leader.topic}/{leader.partition.partition} is outside "
            f"[{leader.log_start_offset}, {leader.high_watermark}]"
        )
    return None


def _found(read: PartitionRead, parts: Sequence[Buffer], *, is_first: bool, room: int) -> None:
    """Only the first partition with data may exceed the room, with one batch: so that a reader always gets on."""
    size_bytes = sum(len(part) for part in parts)
    if is_first or size_bytes <= room:
        read.parts, read.size_bytes = parts, size_bytes
