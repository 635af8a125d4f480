"""Which of a partition's oldest segments have outlived its retention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class RetainedSegment(Protocol):
    @property
    def end_offset(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...
    @property
    def created_at_ms(self) -> int: ...


def retained_from(
    segments: Sequence[RetainedSegment],
    log_start_offset: int,
    *,
    retention_ms: int,
    retention_bytes: int,
    now_ms: int,
    pinned_offset: int | None = None,
) -> int:
    """The new log start offset: after the last segment that is too old, or that the size limit does not need.

    -1 means no limit. Whole segments go, oldest first, and time looks at their newest record, as in Kafka, or at the
    segment's own age where no record has a time. A size limit keeps at least that many bytes. What a reader has pinned
    stays, from the segment with that offset on."""
    start = log_start_offset
    excess_bytes = sum(segment.size_bytes for segment in segments) - retention_bytes if retention_bytes >= 0 else -1
    for segment in segments:
        newest_ms = segment.max_timestamp_ms if segment.max_timestamp_ms >= 0 else segment.created_at_ms
        too_old = retention_ms >= 0 and newest_ms < now_ms - retention_ms
        too_much = retention_bytes >= 0 and excess_bytes >= segment.size_bytes
        pinned = pinned_offset is not None and segment.end_offset > pinned_offset
        if pinned or not (too_old or too_much):
            break
        excess_bytes -= segment.size_bytes
        start = max(start, segment.end_offset)
    return start
