"""What reading needs to know of a partition, whoever leads it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from streamhouse.log.tail import Tail
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.names import TopicPartition


class ReadableLog(Protocol):
    """Offsets and their order are those of `PartitionLeader`, which is one."""

    topic: str
    partition: TopicPartition
    epoch: int
    log_start_offset: int
    committed_end: int
    high_watermark: int
    tail: Tail
    removed: bool

    @property
    def knows_the_end(self) -> bool:
        """Whether `high_watermark` can be taken for the end of the log."""

    @property
    def segments(self) -> Sequence[SegmentRow]: ...

    def segment_at(self, offset: int) -> SegmentRow: ...

    def watch(self, changed: Callable[[], None]) -> None: ...

    def unwatch(self, changed: Callable[[], None]) -> None: ...
