"""Cuts a segment into runs of neighbouring blocks that together hold what is asked for, and little else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streamhouse.format.segment_index import SegmentIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockRun:
    """Bytes [start_byte, end_byte) of the object, whole blocks; of their records, offsets [start, end) are wanted.

    `record_count` is of the whole blocks."""

    start_byte: int
    end_byte: int
    start: int
    end: int
    record_count: int


def block_runs(
    index: SegmentIndex, *, start: int, end: int, min_timestamp_ms: int | None, max_bytes: int
) -> Iterator[BlockRun]:
    """The blocks with offsets in [start, end) and records that are not all older than the time, in order, in runs of at
    most `max_bytes`; a block larger than that is a run of its own. The range lies in the segment, and unless a time was
    given, so do the runs' offsets side by side in it."""
    first = index.block_of(start)
    last = index.block_of(end - 1)
    run_first: int | None = None
    for block in range(first, last + 1):
        if run_first is not None and index.positions[block + 1] - index.positions[run_first] > max_bytes:
            yield _run(index, run_first, block, start, end)
            run_first = None
        if min_timestamp_ms is not None and index.max_timestamps[block] < min_timestamp_ms:
            if run_first is not None:
                yield _run(index, run_first, block, start, end)
                run_first = None
        elif run_first is None:
            run_first = block
    if run_first is not None:
        yield _run(index, run_first, last + 1, start, end)


def _run(index: SegmentIndex, first: int, stop: int, start: int, end: int) -> BlockRun:
    """Of blocks [first, stop)."""
    return BlockRun(
        start_byte=index.positions[first],
        end_byte=index.positions[stop],
        # Before the first block and behind the last one, compaction may have left offsets without records.
        start=max(start, index.first_offsets[first]) if first > index.block_of(start) else start,
        end=min(end, index.first_offsets[stop]) if stop <= index.block_of(end - 1) else end,
        record_count=sum(index.record_counts[first:stop]),
    )
