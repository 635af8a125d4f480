"""Which segments may take the place of others: decided on what a transaction read under its locks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID, uuid5

from streamhouse.metadata.checks import check_segment, check_text
from streamhouse.metadata.leadership import LedPartition, require_leader
from streamhouse.metadata.store import Replacement, SegmentRow
from streamhouse.model.errors import InvalidInput, StaleEpoch

HISTORY_MS = 7 * 24 * 3_600_000
"""How long a replacement's commit id is known, so that its repeat is recognised."""


def commit_id_of(replacement: Replacement, segment: SegmentRow) -> UUID:
    """The rows of segments have commit ids of their own."""
    return uuid5(replacement.commit_id, segment.object_key)


def check_replacement(replacement: Replacement) -> None:
    """What is wrong whatever the rows are."""
    added = replacement.added
    if not replacement.removed or not added:
        raise InvalidInput("a replacement needs segments to remove and segments to add")
    if len(set(replacement.removed)) != len(replacement.removed):
        raise InvalidInput("a segment cannot be replaced twice at once")
    for key in replacement.removed:
        check_text("object key", key)
    for segment in added:
        check_segment(segment, replacement.partition, replacement.epoch)
        if segment.object_key in replacement.removed:
            raise InvalidInput(f"{segment.object_key} cannot take its own place", hint="give new objects new keys")
    for before, after in pairwise(added):
        if before.end_offset != after.base_offset:
            raise InvalidInput(f"new segments end at {before.end_offset} and go on at {after.base_offset}")


def judge_replacement(replacement: Replacement, led: LedPartition | None, removed: Sequence[SegmentRow]) -> None:
    """Raises if it must not be done. `removed`: those of the old segments that are there now, by base offset."""
    partition = replacement.partition
    led = require_leader(led, partition, replacement.agent_id, replacement.epoch)
    if led.generation != replacement.generation:
        raise StaleEpoch(
            f"segments of {partition} were planned to be replaced as generation {replacement.generation}, "
            f"and another plan has begun generation {led.generation} since",
            hint="look at its segments again",
        )
    if len(removed) != len(replacement.removed):
        gone = len(replacement.removed) - len(removed)
        raise StaleEpoch(
            f"{gone} of {len(replacement.removed)} segments of {partition} to be replaced are no longer there",
            hint="look at its segments again",
        )
    for before, after in pairwise(removed):
        if before.end_offset != after.base_offset:
            raise InvalidInput(
                f"segments of {partition} before {before.end_offset} and from {after.base_offset} on are not neighbours"
            )
    old, new = _range_of(removed), _range_of(replacement.added)
    if old != new:
        raise InvalidInput(
            f"segments of {partition} that cover [{old[0]}, {old[1]}) cannot be replaced by ones that "
            f"cover [{new[0]}, {new[1]})"
        )
    epoch = removed[-1].epoch
    for segment in replacement.added:
        # Else epochs could go back from one segment to the next, and a bucket alone could not tell which one counts.
        if segment.epoch != epoch:
            raise InvalidInput(f"what replaces segments of {partition} up to epoch {epoch} cannot have {segment.epoch}")


def _range_of(segments: Sequence[SegmentRow]) -> tuple[int, int]:
    return segments[0].base_offset, segments[-1].end_offset
