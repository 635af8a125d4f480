"""Scans cut into tasks: large partitions become many, small ones share, and every byte is read once."""

from __future__ import annotations

from streamhouse.core.scan_plan import (
    LARGE_TASK_BYTES,
    SMALL_TASK_BYTES,
    ScanPiece,
    StoredPiece,
    TailPiece,
    plan_tasks,
    task_count,
)

MIB = 2**20


def stored(partition: int, number: int, size_bytes: int, *, key: str = "") -> StoredPiece:
    """The piece of this number in a run of equal ones, ten offsets each."""
    return StoredPiece(
        topic="orders",
        partition=partition,
        start=10 * number,
        end=10 * number + 10,
        key=key or f"{partition}/{number}",
        start_byte=number * size_bytes,
        end_byte=(number + 1) * size_bytes,
    )


def tail(partition: int, start: int, end: int, size_bytes: int) -> TailPiece:
    return TailPiece(topic="orders", partition=partition, start=start, end=end, size_bytes=size_bytes)


def sizes(tasks: list[tuple[ScanPiece, ...]]) -> list[int]:
    return [sum(piece.size_bytes for piece in task) for task in tasks]


def test_many_small_partitions_share_a_task() -> None:
    pieces = [tail(partition, 0, 5, 1_000) for partition in range(30)]
    assert task_count(pieces[:8], parallelism=4) == 1
    count = task_count(pieces, parallelism=4)
    assert count == 2
    tasks = plan_tasks(pieces, count=count)
    assert [piece for task in tasks for piece in task] == pieces
    assert sizes(tasks) == [15_000, 15_000]


def test_one_large_partition_becomes_as_many_tasks_as_there_are_cores() -> None:
    pieces = [stored(0, number, SMALL_TASK_BYTES) for number in range(12)]
    assert task_count(pieces, parallelism=4) == 4
    assert sizes(plan_tasks(pieces, count=4)) == [3 * SMALL_TASK_BYTES] * 4


def test_a_task_is_not_larger_than_is_useful() -> None:
    pieces = [stored(0, number, SMALL_TASK_BYTES) for number in range(100)]
    tasks = plan_tasks(pieces, count=task_count(pieces, parallelism=2))
    assert len(tasks) > 2
    assert max(sizes(tasks)) <= LARGE_TASK_BYTES


def test_a_minimum_of_tasks_is_kept_as_far_as_there_are_pieces() -> None:
    pieces = [stored(0, number, 64 * 1024) for number in range(10)]
    assert task_count(pieces, parallelism=1, min_tasks=7) == 7
    assert len(plan_tasks(pieces, count=7)) == 7
    assert len(plan_tasks(pieces[:3], count=7)) == 3


def test_a_skewed_scan_is_balanced() -> None:
    pieces: list[ScanPiece] = [stored(0, number, 4 * MIB) for number in range(30)]
    pieces += [stored(partition, 0, 1_000) for partition in range(1, 30)]
    tasks = plan_tasks(pieces, count=5)
    assert max(sizes(tasks)) < 2 * sum(sizes(tasks)) / 5
    assert sum(sizes(tasks)) == sum(piece.size_bytes for piece in pieces)


def test_a_long_tail_is_cut_at_offsets() -> None:
    tasks = plan_tasks([tail(0, 100, 200, 40 * MIB)], count=4)
    assert [(piece.start, piece.end) for task in tasks for piece in task] == [
        (100, 125), (125, 150), (150, 175), (175, 200)
    ]  # fmt: skip
    assert len(tasks) == 4


def test_a_tail_is_not_cut_below_a_record() -> None:
    pieces = [piece for task in plan_tasks([tail(0, 5, 7, 40 * MIB)], count=8) for piece in task]
    assert [(piece.start, piece.end) for piece in pieces] == [(5, 6), (6, 7)]


def test_neighbours_become_one_read_up_to_a_size() -> None:
    pieces = [stored(0, number, 4 * MIB, key="a") for number in range(6)] + [stored(0, 6, 4 * MIB, key="b")]
    ((first, second, third),) = plan_tasks(pieces, count=1)
    assert isinstance(first, StoredPiece)
    assert isinstance(second, StoredPiece)
    assert (first.start_byte, first.end_byte, first.start, first.end) == (0, 16 * MIB, 0, 40)
    assert (second.start_byte, second.end_byte, second.start, second.end) == (16 * MIB, 24 * MIB, 40, 60)
    assert third == pieces[-1]


def test_pieces_with_something_between_them_stay_apart() -> None:
    pieces = [stored(0, 0, 1_000, key="a"), stored(0, 2, 1_000, key="a")]
    assert plan_tasks(pieces, count=1) == [tuple(pieces)]


def test_nothing_makes_no_tasks() -> None:
    assert plan_tasks([], count=3) == []
    assert task_count([], parallelism=8) == 1
