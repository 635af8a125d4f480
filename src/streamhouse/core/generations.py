"""Which replacements of segments count, of all that a bucket holds: in every place the newest that fits.

A plan to replace segments has a generation, a number of its partition that only grows, taken before the segments are
looked at; when a later plan has taken one, nothing of an earlier plan can be registered any more. So when a plan began,
every earlier one had come to its end: what it left unregistered was made from the log as the last registered ones had
made it, and holds of each key what the log holds. It may stand in for that, wherever no later generation does. What
must never be is an older generation beside a newer one that was made knowing what had replaced it: the newer one may be
without tombstones whose values the older one still has."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Protocol, TypeVar
from uuid import UUID

from streamhouse.format.segment_index import Lineage


class Generated(Protocol):
    """A segment that stands for [base_offset, end_offset). Those with the same `attempt` were written one after the
    other, to be registered together."""

    @property
    def base_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def attempt(self) -> UUID | None: ...
    @property
    def lineage(self) -> Lineage | None: ...


AnySegment = TypeVar("AnySegment", bound=Generated)


def known_log_start(found: Sequence[Generated]) -> int:
    """The log starts there or later: a plan saw it. Tombstones may have been dropped for that very reason."""
    return max((each.lineage.log_start_offset for each in found if each.lineage is not None), default=0)


def newest_generations(found: Sequence[AnySegment]) -> list[AnySegment]:
    """Without those that a newer generation has replaced, and those below the log's start. What is left overlaps only
    where there is no generation to decide by."""
    log_start = known_log_start(found)
    current = [each for each in found if each.end_offset > log_start]
    chosen: list[AnySegment] = []
    for lineage, parts in _attempts(current):
        for start, end in list(_free_stretches(chosen, max(lineage.base_offset, log_start), lineage.end_offset)):
            tiles = [each for each in parts if each.end_offset > start and each.base_offset < end]
            if _fill(tiles, start, end, log_start):
                at = bisect_right(chosen, start, key=lambda each: each.base_offset)
                chosen[at:at] = tiles
    # By place, not by value: equal ones are not the same object in the bucket.
    places = {id(each) for each in chosen}
    return [each for each in current if id(each) in places or _is_free(chosen, each)]


def _attempts(found: Sequence[AnySegment]) -> list[tuple[Lineage, list[AnySegment]]]:
    """What was to be registered together, by offset; the newest generation first."""
    attempts: defaultdict[tuple[Lineage, UUID | None], list[AnySegment]] = defaultdict(list)
    for each in sorted(found, key=lambda each: each.base_offset):
        if each.lineage is not None:
            attempts[each.lineage, each.attempt].append(each)
    newest_first = sorted(attempts.items(), key=lambda attempt: -attempt[0][0].generation)
    return [(lineage, parts) for (lineage, _), parts in newest_first]


def _free_stretches(chosen: Sequence[AnySegment], start: int, end: int) -> Iterator[tuple[int, int]]:
    """What of [start, end) nothing was chosen for yet; `chosen` is by offset and does not overlap."""
    at = max(0, bisect_right(chosen, start, key=lambda each: each.base_offset) - 1)
    while at < len(chosen) and chosen[at].base_offset < end:
        if start < chosen[at].base_offset:
            yield start, chosen[at].base_offset
        start = max(start, chosen[at].end_offset)
        at += 1
    if start < end:
        yield start, end


def _fill(tiles: Sequence[Generated], start: int, end: int, log_start: int) -> bool:
    """Whether they hold all of it: an attempt that came to nothing may have stored only its first segments, and what
    was replaced ends elsewhere."""
    if not tiles or tiles[-1].end_offset != end:
        return False
    first = tiles[0].base_offset
    return (first == start or first < start == log_start) and all(
        before.end_offset == after.base_offset for before, after in pairwise(tiles)
    )


def _is_free(chosen: Sequence[Generated], each: Generated) -> bool:
    at = bisect_right(chosen, each.base_offset, key=lambda other: other.base_offset)
    return (at == 0 or chosen[at - 1].end_offset <= each.base_offset) and (
        at == len(chosen) or chosen[at].base_offset >= each.end_offset
    )
