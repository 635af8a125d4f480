"""Whether the log of one partition has seams (invariant I3), judged from the rows that describe it alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from streamhouse.metadata.cluster import Placement
from streamhouse.metadata.store import SegmentRow
from streamhouse.metadata.wal_objects import WalRange


class _Extent(Protocol):
    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...


def find_seams(placement: Placement, segments: Sequence[SegmentRow], ranges: Sequence[WalRange]) -> Iterator[str]:
    """What is wrong, one sentence each; all three must be from one moment.

    Segments reach from the log start to the committed end, WAL ranges from there to the durable end, and neither have
    gaps, overlaps or epochs that go back. A range may have an older epoch than the segment before it: a new leader
    uploads, under its own epoch, what its predecessor left in the WAL."""
    yield from find_inner_seams(placement.epoch, segments, ranges)
    yield from _segment_ends(placement, segments)
    yield from _range_ends(placement, ranges)


def find_inner_seams(lease_epoch: int, segments: Sequence[SegmentRow], ranges: Sequence[WalRange]) -> Iterator[str]:
    """The same without the ends, so that rows which were read one after the other can be judged as well."""
    yield from _follow_one_another("segment", lease_epoch, segments)
    yield from _follow_one_another("WAL range", lease_epoch, ranges)


def _follow_one_another(what: str, lease_epoch: int, extents: Sequence[_Extent]) -> Iterator[str]:
    for extent in extents:
        if extent.base_offset >= extent.end_offset:
            yield f"{_name(what, extent)} is empty"
        if extent.epoch > lease_epoch:
            yield f"{_name(what, extent)} has epoch {extent.epoch}, but the lease only reached {lease_epoch}"
    for before, after in pairwise(extents):
        if after.base_offset > before.end_offset:
            yield f"gap: no {what} holds {before.end_offset} to {after.base_offset - 1}"
        elif after.base_offset < before.end_offset:
            last = min(before.end_offset, after.end_offset) - 1
            yield f"overlap: two {what}s hold {after.base_offset} to {last}"
        if after.epoch < before.epoch:
            yield f"epoch goes back: {_name(what, after)} has {after.epoch}, the one before it {before.epoch}"


def _segment_ends(placement: Placement, segments: Sequence[SegmentRow]) -> Iterator[str]:
    start, end = placement.log_start_offset, placement.committed_end
    if not segments:
        if start < end:
            yield f"gap: no segment holds {start} to {end - 1}"
        return
    if segments[0].base_offset > start:
        yield f"gap: no segment holds {start} to {segments[0].base_offset - 1}, after the log start"
    if segments[-1].end_offset != end:
        yield f"segments end at {segments[-1].end_offset}, the committed end is {end}"


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


def _name(what: str, extent: _Extent) -> str:
    return f"{what} {extent.base_offset} to {extent.end_offset - 1}"
