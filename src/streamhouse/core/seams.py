"""Whether stretches of a log follow one another: no gaps, no overlaps, no epochs that go back (invariant I3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol


class Extent(Protocol):
    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def epoch(self) -> int: ...


def find_breaks(what: str, extents: Sequence[Extent]) -> Iterator[str]:
    """What is wrong with neighbours, one sentence each; `what` names one of them."""
    for extent in extents:
        if extent.base_offset >= extent.end_offset:
            yield f"{name_extent(what, extent)} is empty"
    for before, after in pairwise(extents):
        if after.base_offset > before.end_offset:
            yield f"gap: no {what} holds {before.end_offset} to {after.base_offset - 1}"
        elif after.base_offset < before.end_offset:
            last = min(before.end_offset, after.end_offset) - 1
            yield f"overlap: two {what}s hold {after.base_offset} to {last}"
        if after.epoch < before.epoch:
            yield f"epoch goes back: {name_extent(what, after)} has {after.epoch}, the one before it {before.epoch}"


def find_end_breaks(extents: Sequence[Extent], start: int, end: int) -> Iterator[str]:
    """Whether segments reach from the log's start to its committed end."""
    if not extents:
        if start < end:
            yield f"gap: no segment holds {start} to {end - 1}"
        return
    if extents[0].base_offset > start:
        yield f"gap: no segment holds {start} to {extents[0].base_offset - 1}, after the log start"
    if extents[-1].end_offset != end:
        yield f"segments end at {extents[-1].end_offset}, the committed end is {end}"


def name_extent(what: str, extent: Extent) -> str:
    return f"{what} {extent.base_offset} to {extent.end_offset - 1}"
