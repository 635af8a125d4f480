"""When a segment is uploaded, and how large it may be."""

from __future__ import annotations

import pytest

from streamhouse.core.segment_roll import CATCH_UP_FACTOR, PACE_MS, is_due, largest_segment_bytes
from streamhouse.model.topic import MAX_SEGMENT_BYTES


@pytest.mark.parametrize(
    ("buffered_bytes", "age_ms", "expected"),
    [
        (0, 10**9, False),
        (1, 0, False),
        (1, 99, False),
        (1, 100, True),
        (999, 99, False),
        (1000, 100, True),
        (5000, 100, True),
    ],
)
def test_size_or_age_makes_an_upload_due_but_nothing_does_for_an_empty_buffer(
    buffered_bytes: int, age_ms: int, expected: bool
) -> None:
    assert is_due(buffered_bytes, age_ms, segment_bytes=1000, segment_age_ms=100) is expected


def test_a_partition_that_fills_segments_quickly_waits_for_its_pace_or_the_largest_size() -> None:
    def due(buffered_bytes: int, age_ms: int) -> bool:
        return is_due(buffered_bytes, age_ms, segment_bytes=1000, segment_age_ms=60_000)

    assert not due(1000, PACE_MS - 1)
    assert due(1000, PACE_MS)
    assert not due(999, PACE_MS)
    assert not due(CATCH_UP_FACTOR * 1000 - 1, 0)
    assert due(CATCH_UP_FACTOR * 1000, 0)


def test_a_segment_that_catches_up_may_be_several_times_the_size() -> None:
    assert largest_segment_bytes(1024) == 1024 * CATCH_UP_FACTOR


@pytest.mark.parametrize("segment_bytes", [MAX_SEGMENT_BYTES // 2, MAX_SEGMENT_BYTES])
def test_no_segment_is_larger_than_the_largest_object(segment_bytes: int) -> None:
    assert largest_segment_bytes(segment_bytes) == MAX_SEGMENT_BYTES
