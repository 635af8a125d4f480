"""Whether the log of one partition has seams (invariant I3), judged from the rows that describe it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamhouse.core.seams import Extent, find_breaks, find_end_breaks, name_extent
from streamhouse.metadata.cluster import Placement
from streamhouse.metadata.store import SegmentRow
from streamhouse.metadata.wal_objects import WalRange


def find_seams(placement: Placement, segments: Sequence[SegmentRow], ranges: Sequence[WalRange]) -> Iterator[str]:
    """What is wrong, one sentence each; all three must be from one moment.

    Segments reach from the log start to the committed end, WAL ranges from there to the durable end, and neither have
    gaps, overlaps or epochs that go back. A range may have an older epoch than the segment before it: a new leader
    uploads, under its own epoch, what its predecessor left in the WAL."""
    yield from find_inner_seams(placement.epoch, segments, ranges)
    yield from find_end_breaks(segments, placement.log_start_offset, placement.committed_end)
    yield from _range_ends(placement, ranges)


def find_inner_seams(lease_epoch: int, segments: Sequence[SegmentRow], ranges: Sequence[WalRange]) -> Iterator[str]:
    """The same without the ends, so that rows which were read one after the other can be judged as well."""
    yield from _follow_one_another("segment", lease_epoch, segments)
    yield from _follow_one_another("WAL range", lease_epoch, ranges)


def _follow_one_another(what: str, lease_epoch: int, extents: Sequence[Extent]) -> Iterator[str]:
    for extent in extents:
        if extent.epoch > lease_epoch:
            yield f"{name_extent(what, extent)} has epoch {extent.epoch}, but the lease only reached {lease_epoch}"
    yield from find_breaks(what, extents)


def _range_ends(placement: Placement, ranges: Sequence[WalRange]) -> Iterator[str]:
    committed_end, durable_end = placement.committed_end, placement.durable_end
    if durable_end < committed_end:
        yield f"the durable end, {durable_end}, is before the committed end, {committed_end}"
    elif not ranges and committed_end < durable_end:
        yield f"gap: no WAL range holds {committed_end} to {durable_end - 1}"
    if not ranges:
        return
    # It may start before the committed end: a segment may end inside a range, between two of its batches.
    if ranges[0].base_offset > committed_end:
        yield f"gap: no WAL range holds {committed_end} to {ranges[0].base_offset - 1}, after the committed end"
    if ranges[-1].end_offset != durable_end:
        yield f"WAL ranges end at {ranges[-1].end_offset}, the durable end is {durable_end}"
