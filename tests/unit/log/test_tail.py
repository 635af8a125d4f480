"""The tail's borders, which a random walk meets too seldom."""

from __future__ import annotations

import pytest

from log_parts.batches import placed, sent
from streamhouse.format.batch import iter_headers
from streamhouse.log.tail import LARGEST_CHUNK_BYTES, SMALLEST_CHUNK_BYTES, Tail


def filled(count: int, size_bytes: int = 100) -> Tail:
    tail = Tail(0)
    for number in range(count):
        tail.append(sent(size_bytes), number + 1, 1)
    return tail


def offsets(parts: list[memoryview]) -> list[int]:
    return [header.base_offset for part in parts for _, header in iter_headers(part)]


@pytest.mark.parametrize("max_bytes", [-(2**31), -1, 0, 1, 99, 100])
def test_however_little_is_asked_for_one_batch_comes_and_no_more(max_bytes: int) -> None:
    tail = filled(10)

    assert [offsets(tail.read(offset, 10, max_bytes)) for offset in (0, 4, 9)] == [[0], [4], [9]]


def test_an_offset_inside_a_batch_gives_that_batch() -> None:
    tail = Tail(10)
    tail.append(sent(count=3), 13, 1)
    tail.append(sent(count=2), 15, 1)

    assert [offsets(tail.read(offset, 15, 2**20)) for offset in (10, 12, 13, 14)] == [[10, 13], [10, 13], [13], [13]]


def test_nothing_at_or_above_the_end_asked_for_is_given() -> None:
    tail = filled(5)

    assert offsets(tail.read(0, 3, 2**20)) == [0, 1, 2]
    assert tail.read(3, 3, 2**20) == []
    assert tail.read(5, 5, 2**20) == []


def test_a_quiet_partition_takes_little_memory_and_a_busy_one_larger_chunks() -> None:
    assert filled(1).size_bytes == SMALLEST_CHUNK_BYTES

    busy = filled(2000, 5_000)

    assert 10_000_000 <= busy.size_bytes <= 10_000_000 + 2 * LARGEST_CHUNK_BYTES


def test_a_large_batch_in_memory_that_is_ours_is_not_copied() -> None:
    tail = Tail(0)
    batch = sent(LARGEST_CHUNK_BYTES // 8)

    stored = tail.append(batch, 1, 1, owned=True)

    assert stored.obj is batch.obj
    assert tail.size_bytes == len(batch)


def test_a_large_batch_in_memory_that_is_not_ours_is_copied() -> None:
    tail = Tail(0)
    batch = sent(LARGEST_CHUNK_BYTES // 8)

    stored = tail.append(batch, 1, 1, owned=False)
    batch[:] = bytes(len(batch))

    assert stored != batch


def test_a_batch_larger_than_a_chunk_gets_one_of_its_size() -> None:
    tail = Tail(0)

    tail.append(sent(3 * LARGEST_CHUNK_BYTES), 1, 1)

    assert tail.size_bytes == 3 * LARGEST_CHUNK_BYTES
    assert offsets(tail.read(0, 1, 10)) == [0]


def test_after_a_truncation_offsets_and_memory_are_used_again() -> None:
    tail = filled(5)
    kept = tail.read(0, 3, 2**20)
    before = b"".join(kept)

    tail.truncate(3)
    tail.append(sent(fill=b"y"), 4, 2)

    assert b"".join(kept) == before
    assert offsets(tail.read(0, 4, 2**20)) == [0, 1, 2, 3]
    assert tail.size_bytes == SMALLEST_CHUNK_BYTES


def test_a_truncation_to_the_start_leaves_an_empty_tail_that_goes_on() -> None:
    tail = filled(5)

    tail.truncate(0)

    assert (tail.start_offset, tail.end_offset, tail.size_bytes) == (0, 0, 0)
    tail.append(sent(), 1, 2)
    assert offsets(tail.read(0, 1, 2**20)) == [0]


def test_the_chunk_that_is_being_filled_is_never_evicted() -> None:
    tail = filled(3)

    assert not tail.evictable(3)


def test_a_chunk_with_one_batch_above_the_offset_is_not_evicted() -> None:
    tail = filled(3, SMALLEST_CHUNK_BYTES // 2)
    assert tail.evictable(2)

    assert not tail.evictable(1)


def test_what_was_evicted_can_still_be_read_by_who_holds_it() -> None:
    tail = filled(10, SMALLEST_CHUNK_BYTES // 2)
    held = tail.read(0, 10, 2**30)
    before = b"".join(held)

    while tail.evictable(10):
        tail.evict()
    tail.append(placed(10, fill=b"z"), 11, 1)

    assert b"".join(held) == before
    assert tail.start_offset > 0


def test_what_is_passed_over_is_not_served_and_frees_whole_chunks() -> None:
    tail = filled(10, SMALLEST_CHUNK_BYTES // 2)
    size_bytes = tail.size_bytes

    freed = tail.pass_over(7)

    assert (tail.start_offset, tail.end_offset) == (7, 10)
    assert freed > 0
    assert tail.size_bytes == size_bytes - freed
    assert offsets(tail.read(7, 10, 2**30)) == [7, 8, 9]
    # Eviction goes on from there, and neither it nor an older border brings anything back.
    assert tail.pass_over(3) == 0
    while tail.evictable(10):
        tail.evict()
    assert tail.start_offset >= 7
    assert tail.pass_over(99) >= 0
    assert (tail.start_offset, tail.end_offset) == (10, 10)
