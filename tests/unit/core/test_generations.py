"""Which of several replacements a bucket shows to be the log, in the cases that would bring deleted keys back."""

from __future__ import annotations

from uuid import UUID

from streamhouse.core.rebuild import FoundSegment, Gap, choose_segments, first_offset, last_generation
from streamhouse.format.segment_index import Lineage


def segment(
    name: str,
    base_offset: int,
    end_offset: int,
    *,
    generation: int = 0,
    of: tuple[int, int] | None = None,
    attempt: int = 0,
    log_start: int = 0,
    epoch: int = 1,
) -> FoundSegment:
    """`of`: what was to be replaced at once, if that is more than the segment's own offsets."""
    replaced = of or (base_offset, end_offset)
    return FoundSegment(
        object_key=name,
        base_offset=base_offset,
        end_offset=end_offset,
        record_count=1,
        size_bytes=1,
        min_timestamp_ms=0,
        max_timestamp_ms=0,
        epoch=epoch,
        attempt=UUID(int=attempt),
        lineage=Lineage(generation, *replaced, log_start) if generation else None,
    )


def chosen(*found: FoundSegment) -> list[str]:
    return [each.object_key for each in choose_segments(found).extents]


def test_of_segments_with_the_same_offsets_the_newest_generation_is_the_log() -> None:
    found = [
        segment("first", 0, 10),
        segment("second", 0, 10, generation=1),
        segment("third", 0, 10, generation=2),
        segment("tombstones", 10, 20),
        segment("no tombstones", 10, 20, generation=3),
    ]

    assert chosen(*found) == chosen(*found[::-1]) == ["third", "no tombstones"]


def test_a_new_generation_is_not_given_up_for_fewer_segments_or_an_earlier_start() -> None:
    """Which is what decides where there are no generations."""
    found = [
        segment("merged", 0, 20, generation=1),
        segment("a", 0, 10, generation=2),
        segment("b", 10, 20, generation=2),
    ]

    assert chosen(*found) == ["a", "b"]


def test_what_an_attempt_left_that_died_does_not_bring_back_what_had_been_replaced() -> None:
    """The first half of it would fit in front of an old segment that is not the log any more."""
    found = [
        segment("old a", 0, 10),
        segment("old b", 10, 20),
        segment("merged", 0, 20, generation=1),
        segment("half", 0, 10, generation=2, of=(0, 20)),
    ]

    assert chosen(*found) == ["merged"]


def test_segments_of_different_attempts_are_not_put_together() -> None:
    found = [
        segment("merged", 0, 20, generation=1),
        segment("half", 0, 10, generation=2, of=(0, 20), attempt=1),
        segment("other half", 10, 20, generation=2, of=(0, 20), attempt=2),
    ]

    assert chosen(*found) == ["merged"]


def test_a_generation_stays_where_a_newer_one_replaced_only_a_part_of_it() -> None:
    found = [
        segment("a", 0, 10, generation=1, of=(0, 20)),
        segment("b", 10, 20, generation=1, of=(0, 20)),
        segment("c", 20, 30),
        segment("bc", 10, 30, generation=2),
    ]

    assert chosen(*found) == ["a", "bc"]


def test_an_attempt_that_was_never_registered_gives_way_to_what_was_done_after_it() -> None:
    found = [
        segment("a", 0, 10),
        segment("b", 10, 20),
        segment("c", 20, 30),
        segment("never ab", 0, 20, generation=1),
        segment("bc", 10, 30, generation=2),
    ]

    assert chosen(*found) == ["a", "bc"]


def test_what_a_plan_took_for_deleted_stays_deleted() -> None:
    """A tombstone may have been dropped because the value that it deletes had been dropped by retention."""
    found = [segment("expired", 0, 10), segment("a", 10, 20), segment("compacted", 20, 30, generation=1, log_start=15)]

    chain = choose_segments(found)

    assert [each.object_key for each in chain.extents] == ["a", "compacted"]
    assert chain.gaps == ()
    assert first_offset(chain.extents, found) == 15
    assert first_offset(chain.extents, found[:2]) == 10


def test_a_part_whose_other_parts_retention_has_dropped_is_still_the_log() -> None:
    found = [segment("b", 10, 20, generation=1, of=(0, 20)), segment("c", 20, 30)]

    assert chosen(*found) == ["b", "c"]
    later = segment("d", 30, 40, generation=2, log_start=10)
    assert chosen(segment("older", 10, 20), *found, later) == ["b", "c", "d"]


def test_uploads_of_a_deposed_leader_do_not_count_against_what_was_replaced() -> None:
    found = [
        segment("a", 0, 10, epoch=2, generation=1),
        segment("lost", 5, 30, epoch=1),
        segment("b", 10, 20, epoch=2),
    ]

    assert chosen(*found) == ["a", "b"]


def test_a_gap_beside_a_generation_is_reported() -> None:
    found = choose_segments([segment("a", 0, 10), segment("c", 20, 30, generation=1)])

    assert [each.object_key for each in found.extents] == ["c"]
    assert found.gaps == (Gap(10, 20),)


def test_the_last_generation_is_that_of_everything_that_is_there() -> None:
    found = [segment("a", 0, 10, generation=7, of=(0, 20)), segment("b", 0, 20, generation=3)]

    assert last_generation(found) == 7
    assert last_generation([segment("a", 0, 10)]) == 0
