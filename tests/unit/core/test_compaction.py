"""What compaction may touch, and how it is divided."""

from __future__ import annotations

from dataclasses import dataclass

from streamhouse.core.compaction import bucket_count, cleanable_count, kept_part, may_drop_tombstones

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Segment:
    max_timestamp_ms: int
    record_count: int = 10
    size_bytes: int = 1000


def test_segments_are_cleanable_up_to_the_first_that_is_too_young() -> None:
    segments = [Segment(100), Segment(300), Segment(150)]

    assert cleanable_count(segments, min_lag_ms=100, now_ms=250) == 1
    assert cleanable_count(segments, min_lag_ms=100, now_ms=400) == 3
    assert cleanable_count(segments, min_lag_ms=0, now_ms=50) == 0
    assert cleanable_count([], min_lag_ms=0, now_ms=50) == 0


def test_tombstones_may_go_when_their_segment_is_older_than_their_retention() -> None:
    assert may_drop_tombstones(Segment(100), delete_retention_ms=50, now_ms=150)
    assert not may_drop_tombstones(Segment(100), delete_retention_ms=50, now_ms=149)


def test_a_part_is_a_share_of_the_segment_by_its_records() -> None:
    part = kept_part(Segment(7), 3)

    assert (part.kept_bytes, part.max_timestamp_ms, part.is_whole) == (300, 7, False)
    assert kept_part(Segment(7), 10).is_whole
    assert kept_part(Segment(7), 0).kept_bytes == 0


def test_the_smallest_rest_of_a_segment_still_weighs_something() -> None:
    assert kept_part(Segment(0, record_count=1_000_000, size_bytes=10), 1).kept_bytes == 1


def test_keys_are_divided_so_that_a_part_fits_and_every_core_has_one() -> None:
    assert bucket_count(0, parallelism=8) == 1
    assert bucket_count(8 * MIB, parallelism=8) == 1
    assert bucket_count(32 * MIB, parallelism=8) == 4
    assert bucket_count(512 * MIB, parallelism=8) == 8
    assert bucket_count(100 * 1024 * MIB, parallelism=8) == 1600
