"""Partitions that other agents lead, as far as their segments go: what any agent can serve from the object store."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable

from streamhouse.log.tail import Tail
from streamhouse.metadata.store import PartitionRow, SegmentRow, SegmentStore
from streamhouse.model.errors import OffsetOutOfRange
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock

_REMEMBERED_LOGS = 1_000


class CommittedLog:
    """One partition as it was when it was loaded; nothing of it changes."""

    def __init__(self, row: PartitionRow, segments: list[SegmentRow], loaded_at_ms: int) -> None:
        self.loaded_at_ms = loaded_at_ms
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


class CommittedLogs:
    """Those that were asked for lately, loaded again when a reader has come to the end of what is known."""

    def __init__(self, store: SegmentStore, clock: Clock, max_age_ms: int) -> None:
        """`max_age_ms`: for how long objects are there after retention has dropped them, at least."""
        self._store = store
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._logs: OrderedDict[TopicPartition, CommittedLog] = OrderedDict()

    async def at(self, partition: TopicPartition, offset: int) -> CommittedLog:
        """NotFound if the partition is gone."""
        known = self._logs.get(partition)
        now_ms = self._clock.monotonic_ms()
        if known is not None and now_ms - known.loaded_at_ms > self._max_age_ms:
            known = None
        if known is None or not known.log_start_offset <= offset < known.committed_end:
            (row,) = await self._store.load_partitions([partition])
            (segments,) = await self._store.load_segments([partition])
            known = CommittedLog(row, segments, now_ms)
        self._logs[partition] = known
        self._logs.move_to_end(partition)
        if len(self._logs) > _REMEMBERED_LOGS:
            self._logs.popitem(last=False)
        return known
