"""When a partition's buffered records become a segment, and how many of them."""

from __future__ import annotations

from streamhouse.model.topic import MAX_SEGMENT_BYTES

# While an upload runs, records gather behind it. The next segment may take this many times the configured size, so
# that a producer faster than the object store gets fewer, larger segments instead of an ever longer queue.
CATCH_UP_FACTOR = 16


def is_due(buffered_bytes: int, oldest_age_ms: int, segment_bytes: int, segment_age_ms: int) -> bool:
    """Whether what is buffered should be uploaded now."""
    return buffered_bytes > 0 and (buffered_bytes >= segment_bytes or oldest_age_ms >= segment_age_ms)


def largest_segment_bytes(segment_bytes: int) -> int:
    return min(segment_bytes * CATCH_UP_FACTOR, MAX_SEGMENT_BYTES)
