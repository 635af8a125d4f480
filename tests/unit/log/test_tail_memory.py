"""Uploaded records stay in memory up to a limit; the partition that uploaded longest ago gives up first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streamhouse.log.tail_memory import TailMemory


class Owner:
    """Holds complete chunks that could go, and counts those that went."""

    def __init__(self, name: str, chunk_bytes: int = 100) -> None:
        self.name = name
        self.chunk_bytes = chunk_bytes
        self.chunks = 0
        self.evicted = 0

    def evict_uploaded_chunk(self) -> int:
        if not self.chunks:
            return 0
        self.chunks -= 1
        self.evicted += 1
        return self.chunk_bytes


def upload(memory: TailMemory, owner: Owner, chunks: int) -> None:
    owner.chunks += chunks
    memory.uploaded(owner, chunks * owner.chunk_bytes)


def test_within_the_limit_nothing_goes() -> None:
    memory, owner = TailMemory(1000), Owner("a")

    upload(memory, owner, 10)

    assert owner.evicted == 0


def test_beyond_the_limit_the_oldest_upload_goes_first() -> None:
    memory, old, young = TailMemory(1000), Owner("old"), Owner("young")
    upload(memory, old, 5)
    upload(memory, young, 5)

    upload(memory, young, 2)

    assert (old.evicted, young.evicted) == (2, 0)


def test_an_upload_makes_a_partition_the_youngest() -> None:
    memory, first, second = TailMemory(1000), Owner("first"), Owner("second")
    upload(memory, first, 5)
    upload(memory, second, 4)
    upload(memory, first, 1)

    upload(memory, first, 1)

    assert (first.evicted, second.evicted) == (0, 1)


def test_who_has_nothing_to_give_is_passed_over() -> None:
    memory, partly, other = TailMemory(1000), Owner("partly"), Owner("other")
    memory.uploaded(partly, 900)  # all of it in the chunk that is still being filled

    upload(memory, other, 8)

    assert other.evicted == 0
    upload(memory, other, 3)
    assert other.evicted == 1


def test_a_limit_of_nothing_evicts_all_that_can_go_and_ends() -> None:
    memory, owner = TailMemory(0), Owner("a")

    upload(memory, owner, 3)
    memory.uploaded(owner, 50)

    assert owner.chunks == 0


def test_a_partition_that_is_gone_counts_no_more() -> None:
    memory, gone, other = TailMemory(1000), Owner("gone"), Owner("other")
    upload(memory, gone, 9)

    memory.forget(gone)
    upload(memory, other, 10)

    assert other.evicted == 0
    assert gone.evicted == 0


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=60), st.integers(0, 1500))
def test_complete_chunks_never_take_more_than_the_limit(steps: list[tuple[int, int]], limit_bytes: int) -> None:
    memory = TailMemory(limit_bytes)
    owners = [Owner(str(number)) for number in range(4)]

    for number, chunks in steps:
        upload(memory, owners[number], chunks)
        assert sum(owner.chunks * owner.chunk_bytes for owner in owners) <= limit_bytes
