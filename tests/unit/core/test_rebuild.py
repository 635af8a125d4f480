"""Which objects are the log, in the cases that a cluster leaves behind."""

from __future__ import annotations

from streamhouse.core.rebuild import FoundRange, FoundSegment, Gap, choose_ranges, choose_segments, next_producer_id


def segment(base_offset: int, end_offset: int, epoch: int, name: str = "") -> FoundSegment:
    return FoundSegment(
        object_key=name or f"{base_offset}-{end_offset}-{epoch}",
        base_offset=base_offset,
        end_offset=end_offset,
        record_count=1,
        size_bytes=1,
        min_timestamp_ms=0,
        max_timestamp_ms=0,
        epoch=epoch,
    )


def wal_range(base_offset: int, end_offset: int, epoch: int) -> FoundRange:
    return FoundRange(
        object_key=f"{base_offset}-{end_offset}-{epoch}",
        base_offset=base_offset,
        end_offset=end_offset,
        epoch=epoch,
        position=8,
        size_bytes=1,
        checksum=0,
    )


def chosen(*found: FoundSegment) -> list[str]:
    return [each.object_key for each in choose_segments(found).extents]


def test_segments_that_follow_one_another_are_the_log() -> None:
    assert chosen(segment(10, 20, 2), segment(0, 10, 1), segment(20, 30, 2)) == ["0-10-1", "10-20-2", "20-30-2"]
    assert chosen() == []


def test_what_a_deposed_leader_uploaded_beyond_its_successors_start_is_left_out() -> None:
    assert chosen(segment(0, 10, 1), segment(10, 30, 1), segment(10, 20, 2)) == ["0-10-1", "10-20-2"]


def test_a_successor_that_uploads_again_what_was_left_takes_the_place() -> None:
    assert chosen(segment(0, 10, 1), segment(10, 20, 1), segment(10, 20, 3)) == ["0-10-1", "10-20-3"]


def test_a_merged_segment_takes_the_place_of_those_of_older_epochs() -> None:
    found = [segment(0, 10, 1), segment(10, 20, 2), segment(20, 30, 3), segment(10, 30, 3), segment(30, 40, 4)]

    assert chosen(*found) == ["0-10-1", "10-30-3", "30-40-4"]


def test_of_two_chains_of_one_epoch_the_one_with_fewer_segments_is_taken() -> None:
    assert chosen(segment(0, 10, 1), segment(10, 20, 1), segment(0, 20, 1)) == ["0-20-1"]


def test_a_merged_segment_whose_neighbour_is_gone_does_not_break_the_log() -> None:
    found = [segment(0, 10, 1), segment(10, 20, 1), segment(20, 30, 1), segment(10, 25, 1)]

    assert chosen(*found) == ["0-10-1", "10-20-1", "20-30-1"]


def test_merges_that_were_never_committed_leave_older_segments_in_the_log() -> None:
    """Each has the epoch of its last part and the base of its first, so it seems to begin where its epoch does."""
    assert chosen(segment(0, 1, 1), segment(0, 2, 2), segment(1, 3, 2)) == ["0-1-1", "1-3-2"]
    assert chosen(segment(0, 2, 1), segment(2, 3, 2), segment(1, 3, 2)) == ["0-2-1", "2-3-2"]


def test_a_gap_is_reported_and_the_newer_part_is_the_log() -> None:
    found = choose_segments([segment(0, 10, 1), segment(20, 30, 1), segment(30, 40, 1)])

    assert [each.base_offset for each in found.extents] == [20, 30]
    assert found.gaps == (Gap(10, 20),)


def ranges(*found: FoundRange, end: int | None, epoch: int = 0) -> list[tuple[int, int, int]]:
    return [
        (each.base_offset, each.end_offset, each.epoch)
        for each in choose_ranges(found, committed_end=end, last_epoch=epoch).extents
    ]


def test_ranges_go_on_where_segments_end() -> None:
    found = [wal_range(0, 5, 1), wal_range(5, 9, 1), wal_range(9, 12, 2)]

    assert ranges(*found, end=5) == [(5, 9, 1), (9, 12, 2)]
    assert ranges(*found, end=12) == []


def test_the_first_range_may_reach_into_the_segments() -> None:
    assert ranges(wal_range(0, 5, 1), wal_range(5, 9, 1), end=3) == [(0, 5, 1), (5, 9, 1)]


def test_a_segment_of_a_later_epoch_does_not_take_back_the_ranges_behind_it() -> None:
    """A new leader uploads under its own epoch what its predecessor left in the WAL."""
    assert ranges(wal_range(5, 9, 1), end=5, epoch=1) == [(5, 9, 1)]


def test_what_a_deposed_leader_wrote_to_the_wal_is_left_out() -> None:
    assert ranges(wal_range(5, 9, 1), wal_range(5, 7, 2), end=5) == [(5, 7, 2)]
    assert ranges(wal_range(5, 9, 1), wal_range(7, 8, 2), wal_range(5, 7, 1), end=5) == [(5, 7, 1), (7, 8, 2)]
    assert ranges(wal_range(5, 9, 1), end=5, epoch=2) == []


def test_without_segments_the_wal_is_the_log() -> None:
    assert ranges(wal_range(0, 5, 1), wal_range(5, 9, 1), end=None) == [(0, 5, 1), (5, 9, 1)]
    assert ranges(end=None) == []


def test_a_gap_in_the_wal_is_reported() -> None:
    lost = choose_ranges([wal_range(7, 9, 1)], committed_end=5, last_epoch=0)

    assert lost.extents == ()
    assert lost.gaps == (Gap(5, 7),)
    behind = choose_ranges([wal_range(5, 7, 1), wal_range(8, 9, 1)], committed_end=5, last_epoch=0)
    assert behind.gaps == (Gap(7, 8),)


def test_producer_ids_go_on_above_all_that_an_earlier_store_could_have_given() -> None:
    first = next_producer_id(1_700_000_000_000)

    assert first > 10**15
    assert next_producer_id(1_700_000_000_001) - first >= 1000
    assert next_producer_id(2**42) < 2**63
