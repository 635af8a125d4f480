"""When a partition's buffered records become a segment, and how many of them."""

from __future__ import annotations

from streamhouse.model.topic import MAX_SEGMENT_BYTES

# A partition that fills a segment in less than this time gets larger ones instead of more of them: every segment
# costs a PUT and a share of a metadata transaction, whatever its size.
PACE_MS = 200
# How many times the configured size a segment may take, because of that or because records gathered behind an upload.
CATCH_UP_FACTOR = 16


def is_due(buffered_bytes: int, oldest_age_ms: int, segment_bytes: int, segment_age_ms: int) -> bool:
    """Whether what is buffered should be uploaded now."""
    if oldest_age_ms >= min(PACE_MS, segment_age_ms):
        return buffered_bytes >= segment_bytes or (buffered_bytes > 0 and oldest_age_ms >= segment_age_ms)
    return buffered_bytes >= largest_segment_bytes(segment_bytes)


def largest_segment_bytes(segment_bytes: int) -> int:
    return min(segment_bytes * CATCH_UP_FACTOR, MAX_SEGMENT_BYTES)
