"""Retention at its borders."""

from __future__ import annotations

from dataclasses import replace

from log_parts.leaders import segment_row
from streamhouse.core.retention import retained_from

NOW_MS = 10_000


def start_of(
    *segments: tuple[int, int], ms: int = -1, size: int = -1, log_start: int = 0, pinned: int | None = None
) -> int:
    """Segments of ten offsets each, as (size, timestamp)."""
    rows = [
        segment_row(number * 10, number * 10 + 10, size_bytes=size_bytes, timestamp_ms=timestamp_ms)
        for number, (size_bytes, timestamp_ms) in enumerate(segments)
    ]
    return retained_from(rows, log_start, retention_ms=ms, retention_bytes=size, now_ms=NOW_MS, pinned_offset=pinned)


def test_a_segment_goes_when_its_newest_record_is_older_than_the_limit_and_not_when_it_is_as_old() -> None:
    assert start_of((1, NOW_MS - 1_000), ms=1_000) == 0
    assert start_of((1, NOW_MS - 1_001), ms=1_000) == 10


def test_an_old_segment_behind_a_young_one_stays() -> None:
    assert start_of((1, NOW_MS), (1, 0), ms=1_000) == 0


def test_records_without_a_time_go_by_the_age_of_their_segment() -> None:
    row = replace(segment_row(0, 10, timestamp_ms=-1), created_at_ms=NOW_MS - 1_000)
    limits = {"retention_bytes": -1, "now_ms": NOW_MS}
    assert retained_from([row], 0, retention_ms=1_000, **limits) == 0
    assert retained_from([row], 0, retention_ms=999, **limits) == 10


def test_zero_time_keeps_only_what_is_from_now() -> None:
    assert start_of((1, NOW_MS - 1), (1, NOW_MS), ms=0) == 10


def test_a_size_limit_keeps_at_least_that_much() -> None:
    assert start_of((100, 0), (100, 0), (100, 0), size=200) == 10
    assert start_of((100, 0), (100, 0), (100, 0), size=201) == 0
    assert start_of((100, 0), (100, 0), (100, 0), size=199) == 10


def test_a_size_limit_of_zero_keeps_nothing() -> None:
    assert start_of((100, NOW_MS), (100, NOW_MS), size=0) == 20


def test_the_two_limits_add_up() -> None:
    assert start_of((100, 0), (100, NOW_MS), (100, NOW_MS), ms=1_000, size=100) == 20


def test_the_start_never_goes_back() -> None:
    assert start_of((1, 0), (1, NOW_MS), ms=1_000, log_start=15) == 15


def test_an_empty_log_keeps_its_start() -> None:
    assert start_of(ms=0, size=0, log_start=7) == 7


def test_what_is_pinned_stays_from_the_segment_with_that_offset_on() -> None:
    old = [(1, 0)] * 3
    expected = {0: 0, 9: 0, 10: 10, 15: 10, 20: 20, 29: 20, 30: 30, 99: 30}
    assert {pinned: start_of(*old, ms=1_000, pinned=pinned) for pinned in expected} == expected
    assert start_of(*old, size=0, pinned=12) == 10


def test_a_pin_below_the_start_keeps_everything_that_is_there() -> None:
    assert start_of((1, 0), (1, 0), ms=1_000, log_start=5, pinned=2) == 5
