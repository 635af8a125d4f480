"""Runs of blocks: whole ones, side by side, none too many and none too large."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.block_runs import BlockRun, block_runs
from streamhouse.format.segment_index import SegmentIndex


def index_of(*blocks: tuple[int, int, int, int]) -> SegmentIndex:
    """From (first offset, largest timestamp, records, bytes) of each block."""
    positions = array("q", [8])
    for *_, size_bytes in blocks:
        positions.append(positions[-1] + size_bytes)
    first_offsets, max_timestamps, record_counts, _ = zip(*blocks, strict=True)
    return SegmentIndex(
        first_offsets=array("q", first_offsets),
        max_timestamps=array("q", max_timestamps),
        record_counts=array("q", record_counts),
        positions=positions,
    )


def cut(
    index: SegmentIndex, start: int, end: int, *, max_bytes: int = 2**40, min_timestamp_ms: int | None = None
) -> list[BlockRun]:
    return list(block_runs(index, start=start, end=end, min_timestamp_ms=min_timestamp_ms, max_bytes=max_bytes))


THREE = index_of((10, 100, 10, 1_000), (20, 300, 10, 2_000), (30, 200, 10, 3_000))


def test_a_whole_segment_is_one_run_if_it_may_be_so_large() -> None:
    assert cut(THREE, 10, 40) == [BlockRun(start_byte=8, end_byte=6_008, start=10, end=40, record_count=30)]


@pytest.mark.parametrize(
    ("start", "end", "byte_range", "records"),
    [(10, 11, (8, 1_008), 10), (19, 21, (8, 3_008), 20), (39, 40, (3_008, 6_008), 10), (20, 30, (1_008, 3_008), 10)],
)
def test_only_blocks_with_wanted_offsets_are_in_it(
    start: int, end: int, byte_range: tuple[int, int], records: int
) -> None:
    (run,) = cut(THREE, start, end)

    assert (run.start, run.end) == (start, end)
    assert (run.start_byte, run.end_byte) == byte_range
    assert run.record_count == records


def test_runs_end_before_they_get_too_large_and_a_larger_block_is_alone() -> None:
    assert [(run.start, run.end) for run in cut(THREE, 10, 40, max_bytes=3_000)] == [(10, 30), (30, 40)]
    assert [(run.start, run.end) for run in cut(THREE, 10, 40, max_bytes=2_999)] == [(10, 20), (20, 30), (30, 40)]


def test_blocks_that_are_older_than_the_time_are_left_out() -> None:
    assert [(run.start, run.end) for run in cut(THREE, 10, 40, min_timestamp_ms=101)] == [(20, 40)]
    assert [(run.start, run.end) for run in cut(THREE, 10, 40, min_timestamp_ms=201)] == [(20, 30)]
    assert cut(THREE, 10, 40, min_timestamp_ms=301) == []


def test_offsets_that_compaction_emptied_belong_to_the_block_before_or_the_first() -> None:
    index = index_of((15, 1, 2, 100), (25, 1, 2, 100))

    assert [(run.start, run.end) for run in cut(index, 10, 40, max_bytes=1)] == [(10, 25), (25, 40)]
    assert [(run.start, run.end) for run in cut(index, 10, 12)] == [(10, 12)]


@given(
    sizes=st.lists(st.tuples(st.integers(1, 20), st.integers(0, 9), st.integers(1, 1_000)), min_size=1, max_size=30),
    ends=st.tuples(st.integers(0, 700), st.integers(1, 700)),
    max_bytes=st.integers(1, 5_000),
    min_timestamp_ms=st.none() | st.integers(0, 9),
)
def test_every_wanted_offset_is_in_exactly_one_run(
    sizes: list[tuple[int, int, int]], ends: tuple[int, int], max_bytes: int, min_timestamp_ms: int | None
) -> None:
    blocks: list[tuple[int, int, int, int]] = []
    offset = 0
    for count, timestamp, size_bytes in sizes:
        blocks.append((offset, timestamp, count, size_bytes))
        offset += count
    start = min(ends[0], offset - 1)
    end = min(start + ends[1], offset)

    runs = cut(index_of(*blocks), start, end, max_bytes=max_bytes, min_timestamp_ms=min_timestamp_ms)

    found = [number for run in runs for number in range(run.start, run.end)]
    assert found == [
        number
        for first, timestamp, count, _ in blocks
        if min_timestamp_ms is None or timestamp >= min_timestamp_ms
        for number in range(max(first, start), min(first + count, end))
    ]
    for run in runs:
        inside = [block for block in blocks if run.start < block[0] + block[2] and block[0] < run.end]
        assert run.end_byte - run.start_byte == sum(size_bytes for *_, size_bytes in inside)
        assert run.record_count == sum(count for _, _, count, _ in inside)
        assert run.end_byte - run.start_byte <= max_bytes or len(inside) == 1
