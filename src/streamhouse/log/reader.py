"""Reads batches back from segments: cached blocks, else one range read for a run of them, with read-ahead."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from itertools import pairwise

from streamhouse.format.batch import first_batch_at, iter_headers, read_header, whole_batches
from streamhouse.format.block_header import BLOCK_HEADER_BYTES, BlockHeader, decode_block_header
from streamhouse.format.segment import decode_block
from streamhouse.format.segment_index import (
    SUFFIX_HINT_BYTES,
    Footer,
    SegmentIndex,
    decode_footer,
    decode_index,
    index_in,
)
from streamhouse.log.block_cache import LoadingCache
from streamhouse.log.readable import ReadableLog
from streamhouse.log.time_search import TimeSearch, newest_timestamp
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData, NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.tasks import TaskGroup

READ_AHEAD_BYTES = 4 * 1024 * 1024
_INDEX_CACHE_BYTES = 16 * 1024 * 1024
_REMEMBERED_READERS = 1024
_SEARCHES_AT_ONCE = 2
"""For a time: the other threads are for those who read and write."""


class SegmentReader:
    def __init__(self, objects: ObjectStore, cache_bytes: int, threads: Executor) -> None:
        self._objects = objects
        self._threads = threads
        self.blocks: LoadingCache[Buffer] = LoadingCache(cache_bytes)
        self.indexes: LoadingCache[SegmentIndex] = LoadingCache(_INDEX_CACHE_BYTES)
        self._tasks = TaskGroup("reader")
        self._expected: OrderedDict[tuple[TopicPartition, int], None] = OrderedDict()
        self._reading_ahead: set[TopicPartition] = set()
        self._searches = asyncio.Semaphore(_SEARCHES_AT_ONCE)

    async def close(self) -> None:
        await self._tasks.cancel()

    async def read(self, leader: ReadableLog, offset: int, max_bytes: int) -> list[Buffer]:
        """Whole batches from the one that holds `offset` on, or, where compaction has removed it, from the next that
        there is; as far as segments go, at least one."""
        is_sequential = (leader.partition, offset) in self._expected
        self._expected.pop((leader.partition, offset), None)
        parts: list[Buffer] = []
        room = max(0, max_bytes)
        has_gaps = False
        while offset < leader.committed_end and (room > 0 or not parts):
            segment = leader.segment_at(offset)
            has_gaps = has_gaps or _has_gaps(segment)
            index = await self._index_of(segment, whole=is_sequential or room >= segment.size_bytes)
            wanted = index.blocks_for(offset, room)
            blocks = await self._blocks_of(segment, index, wanted.first_block, wanted.last_block)
            for number, block in enumerate(blocks, start=wanted.first_block):
                view = memoryview(block)
                start = first_batch_at(view, offset)
                if parts and start < len(view) and read_header(view, start).base_offset < offset:
                    # Segments were replaced meanwhile, and this batch begins with what was read from the old ones.
                    room = 0
                    break
                end = _cut(view, start, room, may_exceed=not parts)
                if end > start:
                    parts.append(view[start:end])
                room -= end - start
                if end < len(view):
                    offset = read_header(view, end).base_offset
                    room = 0
                    break
                offset = index.first_offsets[number + 1] if number + 1 < index.block_count else segment.end_offset
        # A reader asks for what follows the last record that it has, also where that offset is in a gap.
        self._remember(leader.partition, _end_of(parts[-1]) if has_gaps and parts else offset)
        if is_sequential and offset < leader.committed_end:
            self._read_ahead(leader, offset)
        return parts

    async def find_in_segments(self, search: TimeSearch, leader: ReadableLog) -> tuple[int, int] | None:
        """(offset, timestamp) of the first record at or after a time, among those in segments."""
        for segment in list(leader.segments):
            if segment.max_timestamp_ms < search.timestamp_ms or segment.end_offset <= leader.log_start_offset:
                continue
            index = await self._index_of(segment)
            for block in range(index.block_of(leader.log_start_offset), index.block_count):
                if index.max_timestamps[block] < search.timestamp_ms:
                    continue
                data = await self._blocks_of(segment, index, block, block)
                found = await self.find_in(search, data)
                if found is not None:
                    return found
        return None

    async def find_in(self, search: TimeSearch, runs: Sequence[Buffer]) -> tuple[int, int] | None:
        """The same, among some runs of batches."""
        async with self._searches:
            return await asyncio.get_running_loop().run_in_executor(self._threads, search.find, runs)

    async def newest_of(self, runs: Sequence[Buffer], log_start_offset: int) -> int:
        """The largest timestamp in some runs of batches, of what is not deleted; -1 if there is nothing."""
        async with self._searches:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, newest_timestamp, runs, log_start_offset
            )

    async def newest_timestamp(self, leader: ReadableLog) -> int:
        """The largest timestamp of what is in segments and not deleted; -1 if there is nothing."""
        whole = [segment for segment in leader.segments if segment.base_offset >= leader.log_start_offset]
        newest = max((segment.max_timestamp_ms for segment in whole), default=-1)
        for segment in leader.segments[: len(leader.segments) - len(whole)]:
            index = await self._index_of(segment)
            first = index.block_of(leader.log_start_offset)
            blocks = await self._blocks_of(segment, index, first, index.block_count - 1)
            newest = max(newest, await self.newest_of(blocks, leader.log_start_offset))
        return newest

    async def index_of(self, segment: SegmentRow) -> SegmentIndex:
        """Where the segment's blocks are."""
        return await self._index_of(segment)

    async def block_header(self, segment: SegmentRow, index: SegmentIndex, block: int) -> BlockHeader:
        """What a block says of itself, without its content."""
        start = index.positions[block]
        try:
            data = await self._objects.get_range(segment.object_key, start, start + BLOCK_HEADER_BYTES)
        except NotFound as problem:
            raise _as_damage(segment, problem) from None
        return decode_block_header(data, index, block)

    async def _index_of(self, segment: SegmentRow, *, whole: bool = False) -> SegmentIndex:
        """The index; if it must be loaded and the segment is small, a reader of all of it gets the blocks as well."""
        cached = self.indexes.get(segment.object_key)
        if cached is not None:
            return cached
        loading = self.indexes.loading(segment.object_key)
        if loading is None:
            loading = self.indexes.begin(segment.object_key)
            load = self._load_whole if whole and segment.size_bytes <= READ_AHEAD_BYTES else self._load_index
            self._tasks.start(self._load(segment, load), "index")
        return await asyncio.shield(loading)

    async def _load(self, segment: SegmentRow, load: Callable[[SegmentRow], Awaitable[SegmentIndex]]) -> None:
        try:
            index = await load(segment)
        except BaseException as problem:
            self.indexes.fail(segment.object_key, _as_damage(segment, problem))
            if not isinstance(problem, Exception):
                raise
        else:
            self.indexes.finish(segment.object_key, index, index.block_count * 32 + 256)

    async def _load_index(self, segment: SegmentRow) -> SegmentIndex:
        suffix, size_bytes = await self._objects.get_suffix(segment.object_key, SUFFIX_HINT_BYTES)
        footer = _checked_footer(segment, suffix, size_bytes)
        data: Buffer | None = index_in(suffix, footer)
        if data is None:
            data = await self._objects.get_range(segment.object_key, footer.index_position, footer.index_end)
        return decode_index(data, footer)

    async def _load_whole(self, segment: SegmentRow) -> SegmentIndex:
        """One request for the object; its blocks are in the cache before anybody has the index to ask for them."""
        data = await self._objects.get(segment.object_key)
        index, blocks = await asyncio.get_running_loop().run_in_executor(self._threads, _decode_whole, segment, data)
        for number, block in enumerate(blocks):
            self.blocks.put((segment.object_key, number), block, len(block))
        return index

    async def _blocks_of(self, segment: SegmentRow, index: SegmentIndex, first: int, last: int) -> list[Buffer]:
        """Cached ones at once; neighbouring missing ones with one request."""
        found: list[Buffer | asyncio.Future[Buffer]] = []
        missing: list[int] = []
        for block in range(first, last + 1):
            key = (segment.object_key, block)
            ready = self.blocks.get(key) or self.blocks.loading(key)
            if ready is None:
                ready = self.blocks.begin(key)
                missing.append(block)
            found.append(ready)
        for start, end in _runs(missing):
            self._tasks.start(self._load_blocks(segment, index, start, end), "blocks")
        return [await asyncio.shield(item) if isinstance(item, asyncio.Future) else item for item in found]

    async def _load_blocks(self, segment: SegmentRow, index: SegmentIndex, first: int, end: int) -> None:
        key = segment.object_key
        start_byte, end_byte = index.positions[first], index.positions[end]
        try:
            data = await self._objects.get_range(key, start_byte, end_byte)
            decoded = await asyncio.get_running_loop().run_in_executor(
                self._threads, _decode_blocks, data, index, first, end, start_byte
            )
        except BaseException as problem:
            for block in range(first, end):
                self.blocks.fail((key, block), _as_damage(segment, problem))
            if not isinstance(problem, Exception):
                raise
        else:
            for block, raw in enumerate(decoded, start=first):
                self.blocks.finish((key, block), raw, len(raw))

    def _remember(self, partition: TopicPartition, next_offset: int) -> None:
        self._expected[(partition, next_offset)] = None
        if len(self._expected) > _REMEMBERED_READERS:
            self._expected.popitem(last=False)

    def _read_ahead(self, leader: ReadableLog, offset: int) -> None:
        if leader.partition not in self._reading_ahead:
            self._reading_ahead.add(leader.partition)
            self._tasks.start(self._load_ahead(leader, offset), "read-ahead")

    async def _load_ahead(self, leader: ReadableLog, offset: int) -> None:
        """Load what a sequential reader will ask for next. A failure is for the reader to meet, when it asks."""
        room = READ_AHEAD_BYTES
        try:
            while room > 0 and offset < leader.committed_end:
                segment = leader.segment_at(offset)
                index = await self._index_of(segment, whole=True)
                wanted = index.blocks_for(offset, room)
                await self._blocks_of(segment, index, wanted.first_block, wanted.last_block)
                room -= wanted.end - wanted.start
                last = wanted.last_block + 1
                offset = index.first_offsets[last] if last < index.block_count else segment.end_offset
        except Exception:
            pass
        finally:
            self._reading_ahead.discard(leader.partition)


def _as_damage(segment: SegmentRow, problem: BaseException) -> BaseException:
    """An object that is registered and not there is not something that a client asked for in vain."""
    if isinstance(problem, NotFound):
        return CorruptData(f"object {segment.object_key} is gone", hint="restore it from a copy of the bucket")
    return problem


def _checked_footer(segment: SegmentRow, suffix: Buffer, size_bytes: int) -> Footer:
    if size_bytes != segment.size_bytes:
        raise CorruptData(f"object {segment.object_key} has {size_bytes} bytes instead of {segment.size_bytes}")
    footer = decode_footer(suffix, size_bytes)
    if not segment.base_offset <= footer.base_offset < footer.end_offset <= segment.end_offset:
        raise CorruptData(f"object {segment.object_key} holds other offsets than were registered")
    return footer


def _decode_whole(segment: SegmentRow, data: bytes) -> tuple[SegmentIndex, list[Buffer]]:
    footer = _checked_footer(segment, data, len(data))
    index = decode_index(memoryview(data)[footer.index_position : footer.index_end], footer)
    return index, _decode_blocks(data, index, 0, index.block_count, origin=0)


def _decode_blocks(data: bytes, index: SegmentIndex, first: int, end: int, origin: int) -> list[Buffer]:
    """Blocks [first, end) from bytes that start at position `origin` of the object."""
    view = memoryview(data)
    # As bytes of its own: a block that was stored as it is would keep all of `data` in memory.
    return [
        bytes(decode_block(view[start - origin : stop - origin], index, block))
        for block, (start, stop) in enumerate(pairwise(index.positions[first : end + 1]), start=first)
    ]


def _has_gaps(segment: SegmentRow) -> bool:
    """Whether compaction has removed records from it."""
    return segment.record_count < segment.end_offset - segment.base_offset


def _end_of(batches: Buffer) -> int:
    """The offset after the last one in a run of batches."""
    end_offset = 0
    for _, header in iter_headers(batches):
        end_offset = header.end_offset
    return end_offset


def _cut(view: memoryview, start: int, room: int, *, may_exceed: bool) -> int:
    """Where to stop in a block: at its end if that fits, else behind the last batch that does."""
    if len(view) - start <= room:
        return len(view)
    end = whole_batches(view, start, room)
    return end if may_exceed or end - start <= room else start


def _runs(blocks: list[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring numbers as [first, end) pairs."""
    start = 0
    for position in range(1, len(blocks) + 1):
        if position == len(blocks) or blocks[position] != blocks[position - 1] + 1:
            yield blocks[start], blocks[position - 1] + 1
            start = position
