"""What a group consumer keeps of each partition: what is returned, what is done with, what is committed."""

from __future__ import annotations

from streamhouse.client.assigned_partitions import AssignedPartitions
from streamhouse.client.fetching import Fetched
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.format.records import Record

A, B = GroupPartition("t", 0), GroupPartition("t", 1)


def record(offset: int, value: bytes = b"v") -> Record:
    return Record(offset=offset, timestamp_ms=0, key=None, value=value, headers=())


def fetched(place: GroupPartition, start: int, end: int, *, value: bytes = b"v", gap: int = 0) -> Fetched:
    return Fetched(place, start, end + gap, [record(offset, value) for offset in range(start, end)])


def placed(*places: GroupPartition) -> AssignedPartitions:
    partitions = AssignedPartitions()
    partitions.add(places)
    for place in places:
        partitions.place(place, 0)
    return partitions


def test_nothing_is_asked_of_a_partition_until_it_has_a_place_and_while_it_has_records_left() -> None:
    partitions = AssignedPartitions()
    partitions.add([A])
    assert (partitions.to_fetch(), partitions.unplaced) == ({}, [A])
    partitions.place_new(A, 3)
    assert partitions.to_fetch() == {A: 3}
    partitions.put(fetched(A, 3, 5))
    assert partitions.to_fetch() == {}
    assert [taken.offset for taken in partitions.take(10, 100)] == [3, 4]
    assert partitions.to_fetch() == {A: 5}


def test_positions_follow_what_was_returned_and_pass_gaps_when_all_was() -> None:
    partitions = placed(A)
    partitions.put(fetched(A, 0, 3, gap=4))
    partitions.take(2, 100)
    assert partitions.positions == {A: 2}
    partitions.take(2, 100)
    assert partitions.positions == {A: 7}
    partitions.put(Fetched(A, 7, 9, []))
    assert partitions.positions == {A: 9}


def test_partitions_take_turns_so_that_none_waits_for_one_that_always_has_more() -> None:
    partitions = placed(A, B)
    partitions.put(fetched(A, 0, 100))
    partitions.put(fetched(B, 0, 100))
    assert [partitions.take(2, 1000)[0].partition for _ in range(4)] == [0, 1, 0, 1]


def test_bytes_are_limited_but_one_record_always_comes() -> None:
    partitions = placed(A)
    partitions.put(fetched(A, 0, 5, value=b"12345"))
    assert len(partitions.take(10, 11)) == 2
    assert len(partitions.take(10, 1)) == 1


def test_an_answer_to_what_is_no_longer_asked_is_dropped() -> None:
    partitions = placed(A, B)
    partitions.remove([B])
    partitions.put(fetched(B, 0, 2))
    partitions.place(A, 7)
    partitions.put(fetched(A, 0, 2))
    assert partitions.take(10, 100) == []
    assert partitions.positions == {A: 7}


def test_a_place_that_was_sought_is_not_overruled_by_a_lookup() -> None:
    partitions = AssignedPartitions()
    partitions.add([A])
    partitions.note_without_offset([A])
    assert partitions.without_offset == [A]
    partitions.place(A, 5)
    partitions.place_new(A, 0, committed=0)
    assert (partitions.positions, partitions.without_offset) == ({A: 5}, [])


def test_records_are_in_hand_until_they_are_handled_or_committed() -> None:
    partitions = placed(A, B)
    partitions.put(fetched(A, 0, 2))
    partitions.put(fetched(B, 0, 2))
    partitions.take(10, 100)
    assert partitions.in_hand([A, B]) == [A, B]
    partitions.note_committed({A: 2})
    assert partitions.in_hand([A, B]) == [B]
    partitions.handled_all()
    assert partitions.in_hand([A, B]) == []


def test_what_is_committed_is_what_was_handled_and_nothing_twice() -> None:
    partitions = placed(A)
    partitions.note_committed({A: 0})
    partitions.put(fetched(A, 0, 4))
    partitions.take(4, 100)
    assert partitions.uncommitted(handled_only=True) == {}
    assert partitions.uncommitted(handled_only=False) == {A: 4}
    partitions.note_handled({A: 3})
    assert partitions.uncommitted(handled_only=True) == {A: 3}
    partitions.note_committed({A: 4})
    assert partitions.uncommitted(handled_only=True) == {}
