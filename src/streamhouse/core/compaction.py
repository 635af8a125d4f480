"""What compaction may touch: which segments are old enough, which tombstones were seen, what each segment keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from streamhouse.core.merging import Part

# A part of a partition's keys small enough for one worker, with the copies that finding the latest of each takes.
_BUCKET_BYTES = 64 * 2**20
# Less than this is not worth a task of its own, even if a core is idle.
_SMALLEST_BUCKET_BYTES = 8 * 2**20


class CleanableSegment(Protocol):
    @property
    def record_count(self) -> int: ...
    @property
    def size_bytes(self) -> int: ...
    @property
    def max_timestamp_ms(self) -> int: ...


def cleanable_count(segments: Sequence[CleanableSegment], *, min_lag_ms: int, now_ms: int) -> int:
    """How many of a partition's oldest segments may be compacted: up to the first with a record that is too young."""
    for index, segment in enumerate(segments):
        if segment.max_timestamp_ms > now_ms - min_lag_ms:
            return index
    return len(segments)


def may_drop_tombstones(segment: CleanableSegment, *, delete_retention_ms: int, now_ms: int) -> bool:
    """Whether its tombstones have been there for long enough. One that still has something to delete is kept all the
    same, until a later run: whoever read the old value must be able to read that it is gone."""
    return segment.max_timestamp_ms <= now_ms - delete_retention_ms


def kept_part(segment: CleanableSegment, kept_count: int) -> Part:
    """Its share of what takes its place, by the number of records that it keeps."""
    kept_bytes = -(-segment.size_bytes * kept_count // segment.record_count)
    return Part(
        kept_bytes=kept_bytes,
        max_timestamp_ms=segment.max_timestamp_ms,
        is_whole=kept_count == segment.record_count,
    )


def bucket_count(total_bytes: int, *, parallelism: int) -> int:
    """Into how many parts the keys of a partition are divided: each fits a worker, and every core has some."""
    needed = -(-total_bytes // _BUCKET_BYTES)
    worthwhile = min(parallelism, -(-total_bytes // _SMALLEST_BUCKET_BYTES))
    return max(1, needed, worthwhile)
