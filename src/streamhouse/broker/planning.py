"""Plans reads of the object store: which bytes of which segments hold a range of offsets, and what is in none yet."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from uuid import UUID

from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.segment_blocks import OpenedSegment, open_segment
from streamhouse.broker.topics import Topics
from streamhouse.client.peer import LATEST
from streamhouse.core.block_runs import BlockRun, block_runs
from streamhouse.log.committed_log import CommittedLogs
from streamhouse.log.reader import SegmentReader
from streamhouse.metadata.store import SegmentRow, SegmentStore
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic

T = TypeVar("T")
Item = TypeVar("Item")

# Questions to leaders and to the metadata store, and indexes read, at once.
_ASKED_AT_ONCE = 64
_INDEXES_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSlice:
    """Offsets [start, end) of a partition. Blocks that surely have no record between the timestamps, both included, are
    left out; others may hold some that are not."""

    topic: Topic
    partition: int
    start: int
    end: int
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise InvalidInput(f"[{self.start}, {self.end}) is not a range of offsets")
        if not 0 <= self.partition < self.topic.partition_count:
            raise NotFound(f"there is no partition {self.partition} of {self.topic.name}")


class Piece(NamedTuple):
    """A run of blocks and the object that it is in."""

    object_key: str
    run: BlockRun


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """The pieces in offset order; [tail_start, tail_end) is in no segment yet, and `tail_bytes` long, about."""

    log_start_offset: int
    high_watermark: int
    pieces: list[Piece]
    tail_start: int
    tail_end: int
    tail_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLog:
    """What of a partition is in segments: they go up to `committed_end` without gaps."""

    log_start_offset: int
    committed_end: int
    segments: Sequence[SegmentRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """A slice as far as it is there: offsets [start, tail_start) are in these segments, [tail_start, end) in none."""

    log_start_offset: int
    high_watermark: int
    start: int
    tail_start: int
    end: int
    tail_bytes: int
    segments: list[SegmentRow]


class Planner:
    def __init__(
        self,
        *,
        topics: Topics,
        forwarder: Forwarder,
        reader: SegmentReader,
        committed_logs: CommittedLogs,
        store: SegmentStore,
    ) -> None:
        self._topics = topics
        self._forwarder = forwarder
        self._reader = reader
        self._committed_logs = committed_logs
        self._store = store

    async def topic(self, name: str, partition: int, topic_id: UUID | None = None) -> Topic:
        """Also one that another node has made, or given that partition, a moment ago. NotFound if it is not the one
        with this id."""
        topic = await self._topics.look_up(name, partition)
        if topic_id not in (None, topic.topic_id):
            await self._topics.refresh()
            topic = self._topics.get(name)
        if topic_id not in (None, topic.topic_id):
            raise NotFound(f"topic {name!r} was deleted and made again: it is not {topic_id} any more")
        return topic

    async def offsets_at(self, questions: Sequence[tuple[Topic, int, int]]) -> list[int | None]:
        """Of (topic, partition, time), in the order asked; see `Peer.offset_at`."""

        async def ask(question: tuple[Topic, int, int]) -> int | None:
            return (await self._forwarder.offset_at(*question)).offset

        return await _in_batches(questions, ask, _ASKED_AT_ONCE)

    async def begin_generation(self, topic: Topic, partition: int) -> int:
        """Of a plan to replace segments; see `SegmentStore.begin_generation`."""
        return await self._store.begin_generation(_partition_of(topic, partition))

    async def stored_log(self, topic: Topic, partition: int) -> StoredLog:
        """As the metadata store has it now."""
        at = _partition_of(topic, partition)
        (segments,) = await self._store.load_segments([at])
        # Afterwards: where a segment was dropped meanwhile, the log is known to start later.
        (row,) = await self._store.load_partitions([at])
        end = segments[-1].end_offset if segments else row.log_start_offset
        return StoredLog(log_start_offset=row.log_start_offset, committed_end=end, segments=segments)

    async def opened_segment(
        self, topic: Topic, partition: int, base_offset: int, first_block: int, count: int
    ) -> OpenedSegment:
        """The segment that begins at an offset, with so many of its blocks from one on."""
        segments = (await self.stored_log(topic, partition)).segments
        place = bisect_left(segments, base_offset, key=lambda segment: segment.base_offset)
        if place == len(segments) or segments[place].base_offset != base_offset:
            raise NotFound(
                f"no segment of {topic.name}/{partition} begins at offset {base_offset}",
                hint="list the partition's segments: retention and compaction change them",
            )
        return await open_segment(self._reader, segments[place], first_block, count)

    async def plan(self, slices: Sequence[LogSlice], *, piece_bytes: int) -> list[ReadPlan]:
        """In the order asked. No piece is larger than `piece_bytes` unless a single block is."""
        if piece_bytes < 1:
            raise InvalidInput(f"pieces of {piece_bytes} bytes", hint="piece_bytes is at least 1")
        bounds = await _in_batches(slices, self._bounds_of, _ASKED_AT_ONCE)
        plans = [_empty_plan(bound) for bound in bounds]
        wanted = [
            (number, segment)
            for number, (asked, bound) in enumerate(zip(slices, bounds, strict=True))
            for segment in bound.segments
            if _may_have_times(segment, asked)
        ]
        for start in range(0, len(wanted), _INDEXES_AT_ONCE):
            some = wanted[start : start + _INDEXES_AT_ONCE]
            indexes = await asyncio.gather(*(self._reader.index_of(segment) for _, segment in some))
            for (number, segment), index in zip(some, indexes, strict=True):
                runs = block_runs(
                    index,
                    start=max(bounds[number].start, segment.base_offset),
                    end=min(bounds[number].tail_start, segment.end_offset),
                    min_timestamp_ms=slices[number].min_timestamp_ms,
                    max_bytes=piece_bytes,
                )
                plans[number].pieces.extend(Piece(segment.object_key, run) for run in runs)
        return plans

    async def _bounds_of(self, asked: LogSlice) -> _Bounds:
        leader = self._topics.leaders_of(asked.topic)[asked.partition]
        if leader is not None and leader.has_begun and leader.knows_the_end:
            return _bounds(
                asked,
                StoredLog(
                    log_start_offset=leader.log_start_offset,
                    committed_end=leader.committed_end,
                    segments=leader.segments,
                ),
                log_start_offset=leader.log_start_offset,
                high_watermark=leader.high_watermark,
                uncommitted=(leader.high_watermark - leader.committed_end, leader.buffered_bytes),
            )
        # The high watermark first: what is committed after that is in the segments then, and in the tail as well.
        found = await self._forwarder.offset_at(asked.topic, asked.partition, LATEST)
        last = max(asked.start, min(asked.end, found.high_watermark) - 1, found.log_start_offset)
        partition = TopicPartition(asked.topic.topic_id, asked.partition)
        log = await self._committed_logs.now(partition, last)
        return _bounds(
            asked,
            StoredLog(log_start_offset=log.log_start_offset, committed_end=log.committed_end, segments=log.segments),
            log_start_offset=found.log_start_offset,
            high_watermark=found.high_watermark,
            uncommitted=(found.high_watermark - found.committed_end, found.uncommitted_bytes),
        )


def _partition_of(topic: Topic, partition: int) -> TopicPartition:
    if not 0 <= partition < topic.partition_count:
        raise NotFound(f"there is no partition {partition} of {topic.name}")
    return TopicPartition(topic.topic_id, partition)


def _bounds(
    asked: LogSlice, log: StoredLog, *, log_start_offset: int, high_watermark: int, uncommitted: tuple[int, int]
) -> _Bounds:
    """`uncommitted`: how many offsets are in no segment yet, by their leader's count, and in how many bytes."""
    # Segments may have been dropped after the log's start was read; below the first there is nothing.
    first = log.segments[0].base_offset if log.segments else log.committed_end
    log_start_offset = max(log_start_offset, log.log_start_offset, min(first, log.committed_end))
    start = max(asked.start, log_start_offset)
    end = max(start, min(asked.end, high_watermark))
    tail_start = min(max(start, log.committed_end), end)
    count, size_bytes = uncommitted
    segments = log.segments
    first_segment = max(0, bisect_right(segments, start, key=lambda segment: segment.base_offset) - 1)
    end_segment = bisect_left(segments, tail_start, key=lambda segment: segment.base_offset)
    return _Bounds(
        log_start_offset=log_start_offset,
        high_watermark=high_watermark,
        start=start,
        tail_start=tail_start,
        end=end,
        tail_bytes=-(-size_bytes * (end - tail_start) // count) if count else 0,
        segments=list(segments[first_segment:end_segment]) if start < tail_start else [],
    )


def _empty_plan(bounds: _Bounds) -> ReadPlan:
    return ReadPlan(
        log_start_offset=bounds.log_start_offset,
        high_watermark=bounds.high_watermark,
        pieces=[],
        tail_start=bounds.tail_start,
        tail_end=bounds.end,
        tail_bytes=bounds.tail_bytes,
    )


def _may_have_times(segment: SegmentRow, asked: LogSlice) -> bool:
    if asked.min_timestamp_ms is not None and segment.max_timestamp_ms < asked.min_timestamp_ms:
        return False
    return asked.max_timestamp_ms is None or segment.min_timestamp_ms <= asked.max_timestamp_ms


async def _in_batches(items: Sequence[Item], work: Callable[[Item], Awaitable[T]], at_once: int) -> list[T]:
    results: list[T] = []
    for start in range(0, len(items), at_once):
        results += await asyncio.gather(*(work(item) for item in items[start : start + at_once]))
    return results
