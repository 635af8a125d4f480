"""Partitions that other agents lead, as far as their segments go: what any agent can serve from the object store."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from streamhouse.log.tail import Tail
from streamhouse.metadata.store import PartitionRow, SegmentRow, SegmentStore
from streamhouse.model.errors import MetadataUnavailable, OffsetOutOfRange
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock

_REMEMBERED_LOGS = 1_000
_TRUSTED_MS = 1_000
_PATIENCE_S = 2.0


class CommittedLog:
    """One partition as it was when it was loaded; nothing of it changes."""

    def __init__(self, row: PartitionRow, segments: list[SegmentRow]) -> None:
        self.topic = row.topic
        self.partition = row.partition
        self.epoch = row.epochs[-1][0] if row.epochs else -1
        self.log_start_offset = row.log_start_offset
        self.committed_end = row.next_offset
        self.high_watermark = row.next_offset
        self.segments = segments
        self.tail = Tail(row.next_offset)
        self.removed = False
        self.knows_the_end = False  # the leader has more

    def segment_at(self, offset: int) -> SegmentRow:
        index = bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1
        if index < 0:
            raise OffsetOutOfRange(f"offset {offset} of {self.topic}/{self.partition.partition} was deleted")
        return self.segments[index]

    def watch(self, changed: Callable[[], None]) -> None:
        """It never changes; who waits for more asks the leader."""

    def unwatch(self, changed: Callable[[], None]) -> None:
        """See `watch`."""


@dataclass(slots=True)
class _Known:
    log: CommittedLog
    version: tuple[int, int]
    is_so_at_ms: int
    """When the store last said so."""
    looked_at_ms: int
    """When it was last asked."""


class CommittedLogs:
    """Those that were asked for lately, loaded again when their segments are others by now, and when a reader has come
    to the end of what is known."""

    def __init__(self, store: SegmentStore, clock: Clock, max_age_ms: int) -> None:
        """`max_age_ms`: for how long objects are there after they were dropped or replaced, at least. While the store
        is away, readers may go on for as long with what was known."""
        self._store = store
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._logs: OrderedDict[TopicPartition, _Known] = OrderedDict()

    async def at(self, partition: TopicPartition, offset: int, *, as_of_now: bool = False) -> CommittedLog:
        """As it was a second ago, at the latest. NotFound if the partition is gone."""
        known = self._logs.get(partition)
        now_ms = self._clock.monotonic_ms()
        if known is not None and (as_of_now or now_ms - known.looked_at_ms >= _TRUSTED_MS):
            known = await self._look_again(known, now_ms)
        if known is None or not known.log.log_start_offset <= offset < known.log.committed_end:
            known = await self._load(partition, now_ms)
        self._logs[partition] = known
        self._logs.move_to_end(partition)
        if len(self._logs) > _REMEMBERED_LOGS:
            self._logs.popitem(last=False)
        return known.log

    async def _load(self, partition: TopicPartition, now_ms: int) -> _Known:
        # The row first: what is replaced in between is noticed at the next look.
        (row,) = await self._store.load_partitions([partition])
        (segments,) = await self._store.load_segments([partition])
        return _Known(CommittedLog(row, segments), _version(row), now_ms, now_ms)

    async def _look_again(self, known: _Known, now_ms: int) -> _Known | None:
        """None if it is another log by now."""
        known.looked_at_ms = now_ms
        try:
            async with asyncio.timeout(_PATIENCE_S):
                (row,) = await self._store.load_partitions([known.log.partition])
        except (MetadataUnavailable, TimeoutError):
            return known if now_ms - known.is_so_at_ms <= self._max_age_ms else None
        if _version(row) != known.version:
            return None
        known.is_so_at_ms = now_ms
        return known


def _version(row: PartitionRow) -> tuple[int, int]:
    """Changes with every change of its segments but those at its end."""
    return row.log_start_offset, row.replacements
