"""When a segment is uploaded, and how large it may be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.segment_roll import CATCH_UP_FACTOR, PACE_MS, is_due, largest_segment_bytes
from streamhouse.model.topic import MAX_SEGMENT_BYTES


@pytest.mark.parametrize(
    ("buffered_bytes", "age_ms", "expected"),
    [
        (0, 10**9, False),
        (1, 9_999, False),
        (1, 10_000, True),
        (999, 9_999, False),
        (1_000, PACE_MS - 1, False),
        (1_000, PACE_MS, True),
        (5_000, 10_000, True),
        (1_000 * CATCH_UP_FACTOR - 1, 0, False),
        (1_000 * CATCH_UP_FACTOR, 0, True),
    ],
)
def test_size_or_age_makes_an_upload_due_but_a_busy_partition_keeps_its_pace(
    buffered_bytes: int, age_ms: int, expected: bool
) -> None:
    assert is_due(buffered_bytes, age_ms, segment_bytes=1_000, segment_age_ms=10_000) is expected


@pytest.mark.parametrize(("age_ms", "expected"), [(4, False), (5, True)])
def test_an_age_below_the_pace_is_kept(age_ms: int, expected: bool) -> None:
    assert is_due(1, age_ms, segment_bytes=1_000, segment_age_ms=5) is expected
    assert is_due(1_000, age_ms, segment_bytes=1_000, segment_age_ms=5) is expected


@given(st.integers(0, 2**30), st.integers(0, 10**6), st.integers(1024, MAX_SEGMENT_BYTES), st.integers(1, 10**6))
def test_nothing_is_never_due_and_what_is_due_stays_due(
    buffered_bytes: int, age_ms: int, segment_bytes: int, segment_age_ms: int
) -> None:
    assert not is_due(0, age_ms, segment_bytes, segment_age_ms)
    if is_due(buffered_bytes, age_ms, segment_bytes, segment_age_ms):
        assert is_due(buffered_bytes + 1, age_ms, segment_bytes, segment_age_ms)
        assert is_due(buffered_bytes, age_ms + 1, segment_bytes, segment_age_ms)
    assert buffered_bytes == 0 or is_due(buffered_bytes, segment_age_ms, segment_bytes, segment_age_ms)


def test_a_segment_that_catches_up_may_be_several_times_the_size() -> None:
    assert largest_segment_bytes(1024) == 1024 * CATCH_UP_FACTOR


@pytest.mark.parametrize("segment_bytes", [MAX_SEGMENT_BYTES // 2, MAX_SEGMENT_BYTES])
def test_no_segment_is_larger_than_the_largest_object(segment_bytes: int) -> None:
    assert largest_segment_bytes(segment_bytes) == MAX_SEGMENT_BYTES
