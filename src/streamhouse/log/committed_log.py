"""Partitions that other agents lead, as far as their segments go: what any agent can serve from the object store."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from streamhouse.log.tail import Tail
from streamhouse.metadata.store import PartitionRow, SegmentRow, SegmentStore
from streamhouse.model.errors import MetadataUnavailable, NotFound, OffsetOutOfRange
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock

_REMEMBERED_LOGS = 1_000
_TRUSTED_MS = 1_000
_PATIENCE_S = 2.0
_AWAY_MS = 10_000


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


class _Known(NamedTuple):
    log: CommittedLog
    version: tuple[int, int]
    as_of_ms: int

    def has(self, offset: int) -> bool:
        return self.log.log_start_offset <= offset < self.log.committed_end


class CommittedLogs:
    """Those that were asked for lately, loaded again when their segments are others by now, and when a reader has come
    to the end of what is known."""

    def __init__(self, store: SegmentStore, clock: Clock, max_age_ms: int) -> None:
        """`max_age_ms`: for how long objects are there after they were dropped or replaced, at least."""
        self._store = store
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._logs: OrderedDict[TopicPartition, _Known] = OrderedDict()
        self._away_until_ms = 0
        """While the store is away, those who ask need not all wait for it."""

    async def at(self, partition: TopicPartition, offset: int) -> CommittedLog:
        """As it was a second ago, or later; while the store is away, as it was when that was last heard of, unless its
        objects may be gone. NotFound if the partition is gone."""
        known = self._logs.get(partition)
        if known is None or not known.has(offset):
            return await self.now(partition, offset)
        self._logs.move_to_end(partition)
        now_ms = self._clock.monotonic_ms()
        age_ms = now_ms - known.as_of_ms
        if age_ms < _TRUSTED_MS:
            return known.log
        if now_ms >= self._away_until_ms or age_ms > self._max_age_ms:
            try:
                async with asyncio.timeout(_PATIENCE_S):
                    return await self.now(partition, offset)
            except (MetadataUnavailable, TimeoutError):
                self._away_until_ms = self._clock.monotonic_ms() + _AWAY_MS
        if age_ms > self._max_age_ms:
            raise MetadataUnavailable(f"nobody says whether {partition} is still what it was {age_ms // 1000} s ago")
        return known.log

    async def now(self, partition: TopicPartition, offset: int) -> CommittedLog:
        """As it is now. NotFound if the partition is gone."""
        known = self._logs.get(partition)
        asked_at_ms = self._clock.monotonic_ms()
        try:
            (row,) = await self._store.load_partitions([partition])
        except NotFound:
            self._logs.pop(partition, None)
            raise
        version = row.log_start_offset, row.replacements  # which stay when segments are added at the end
        if known is None or known.version != version or not known.has(offset):
            # After the row: what is replaced in between is noticed at the next look.
            (segments,) = await self._store.load_segments([partition])
            log = CommittedLog(row, segments)
        else:
            log = known.log
        self._keep(partition, _Known(log, version, asked_at_ms))
        return log

    def _keep(self, partition: TopicPartition, known: _Known) -> None:
        current = self._logs.get(partition)
        if current is not None and current.as_of_ms > known.as_of_ms:
            return  # this answer was asked for earlier, and came later
        self._logs[partition] = known
        self._logs.move_to_end(partition)
        if len(self._logs) > _REMEMBERED_LOGS:
            self._logs.popitem(last=False)
