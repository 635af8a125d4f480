"""Reading partitions together: from memory, from segments, or when something arrives."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.batches import header_of, sent
from log_parts.engines import Running, bench, finishes
from log_parts.leaders import Ack, Partition
from log_parts.waiting import until
from streamhouse.broker.fetch import Fetcher, PartitionRead
from streamhouse.format.batch import iter_headers
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import NotLeader, OffsetOutOfRange, StorageUnavailable
from streamhouse.objects.faulty import Operation

EVERYTHING = 2**31
HOUR_MS = 3_600_000


def fetcher() -> Fetcher:
    return Fetcher(None)  # type: ignore[arg-type]


def filled(count: int = 3, size_bytes: int = 100) -> PartitionLeader:
    """A leader with durable batches in memory."""
    partition = Partition()
    for _ in range(count):
        batch = sent(size_bytes)
        partition.leader.append(batch, header_of(batch), Ack())
    partition.wal.sync()
    return partition.leader


def offsets(read: PartitionRead) -> list[int]:
    content = b"".join(read.parts)
    assert len(content) == read.size_bytes
    return [header.base_offset for _, header in iter_headers(content)]


# --- from memory ---


def test_everything_in_memory_is_read_without_waiting() -> None:
    reads = [PartitionRead(filled(), 1, EVERYTHING), PartitionRead(filled(), 0, EVERYTHING)]

    assert fetcher().read_memory(reads, EVERYTHING)
    assert [offsets(read) for read in reads] == [[1, 2], [0, 1, 2]]


def test_each_partition_has_its_own_limit_and_all_have_one_together() -> None:
    reads = [PartitionRead(filled(9), 0, 250), PartitionRead(filled(9), 0, 10_000), PartitionRead(filled(9), 0, 10_000)]

    fetcher().read_memory(reads, 700)

    assert [len(offsets(read)) for read in reads] == [2, 5, 0]


@pytest.mark.parametrize("max_bytes", [0, 1, 99])
def test_the_first_partition_with_data_gives_a_batch_although_it_is_larger_than_the_limit(max_bytes: int) -> None:
    empty, full, other = Partition().leader, filled(), filled()
    reads = [PartitionRead(leader, 0, EVERYTHING) for leader in (empty, full, other)]

    fetcher().read_memory(reads, max_bytes)

    assert [offsets(read) for read in reads] == [[], [0], []]


def test_a_later_partition_does_not_exceed_what_is_left() -> None:
    reads = [PartitionRead(filled(1, 100), 0, EVERYTHING), PartitionRead(filled(1, 500), 0, EVERYTHING)]

    fetcher().read_memory(reads, 300)

    assert [offsets(read) for read in reads] == [[0], []]


@pytest.mark.parametrize("offset", [-1, 4, 10**12])
def test_an_offset_outside_the_log_is_a_problem_of_its_partition_alone(offset: int) -> None:
    reads = [PartitionRead(filled(), offset, EVERYTHING), PartitionRead(filled(), 0, EVERYTHING)]

    fetcher().read_memory(reads, EVERYTHING)

    assert isinstance(reads[0].problem, OffsetOutOfRange)
    assert offsets(reads[1]) == [0, 1, 2]


def test_the_end_of_the_log_is_no_problem_and_has_nothing() -> None:
    read = PartitionRead(filled(), 3, EVERYTHING)

    assert fetcher().read_memory([read], EVERYTHING)
    assert (read.problem, offsets(read)) == (None, [])


def test_a_partition_that_is_no_longer_led_is_a_problem() -> None:
    leader = filled()
    leader.remove(NotLeader("gone"))
    read = PartitionRead(leader, 0, EVERYTHING)

    fetcher().read_memory([read], EVERYTHING)

    assert isinstance(read.problem, NotLeader)


# --- from segments ---


async def test_what_is_not_in_memory_is_left_for_the_read_that_may_wait() -> None:
    async with bench() as shared, shared.engine(tail_bytes=0) as running:
        await uploaded(running, 5)
        await running.produce(sent(20_000))
        read = PartitionRead(running.leader(), 0, EVERYTHING)
        both = Fetcher(running.engine.reader)

        assert not both.read_memory([read], EVERYTHING)
        await both.read([read], EVERYTHING)
        assert offsets(read)[0] == 0
        following = PartitionRead(running.leader(), offsets(read)[-1] + 1, EVERYTHING)
        await both.read([following], EVERYTHING)

        assert offsets(read) + offsets(following) == list(range(6))


async def uploaded(running: Running, count: int) -> None:
    """So many batches in segments, and as few of them as possible in memory."""
    await running.create()
    for _ in range(count):
        await running.produce(sent(20_000))
    await running.engine.flush()


async def test_a_store_that_is_away_is_a_problem_of_the_partitions_that_need_it() -> None:
    async with bench() as shared, shared.engine(tail_bytes=0) as running:
        await uploaded(running, 5)
        await running.produce(sent(20_000))
        shared.objects.fail(Operation.READ, times=None)
        reads = [
            PartitionRead(running.leader(), 0, EVERYTHING),
            PartitionRead(running.leader(), 5, EVERYTHING),
        ]

        await Fetcher(running.engine.reader).read(reads, EVERYTHING)

        assert isinstance(reads[0].problem, StorageUnavailable)
        assert offsets(reads[1]) == [5]


# --- waiting ---


async def test_a_wait_ends_when_enough_has_come() -> None:
    partition = Partition()
    reads = [PartitionRead(partition.leader, 0, EVERYTHING)]
    waiting = asyncio.ensure_future(fetcher().wait(reads, 250, EVERYTHING, HOUR_MS))
    for count in range(3):
        await asyncio.sleep(0)
        assert not waiting.done(), count
        batch = sent(100)
        partition.leader.append(batch, header_of(batch), Ack())
        partition.wal.sync()

    await finishes(waiting, "the wait")

    assert offsets(reads[0]) == [0, 1, 2]


async def test_a_wait_ends_with_what_there_is_when_its_time_is_over() -> None:
    reads = [PartitionRead(filled(), 0, EVERYTHING)]

    await finishes(fetcher().wait(reads, 10_000, EVERYTHING, 20), "the wait")

    assert offsets(reads[0]) == [0, 1, 2]


async def test_a_wait_ends_when_a_partition_goes_and_says_so() -> None:
    leader = filled()
    reads = [PartitionRead(leader, 3, EVERYTHING), PartitionRead(filled(), 3, EVERYTHING)]
    waiting = asyncio.ensure_future(fetcher().wait(reads, 1, EVERYTHING, HOUR_MS))
    await asyncio.sleep(0)

    leader.remove(NotLeader("gone"))
    await finishes(waiting, "the wait")

    assert isinstance(reads[0].problem, NotLeader)


async def test_nobody_watches_after_the_wait() -> None:
    leader = filled()
    reads = [PartitionRead(leader, 3, EVERYTHING), PartitionRead(leader, 3, EVERYTHING)]

    await fetcher().wait(reads, 1, EVERYTHING, 1)
    waiting = asyncio.ensure_future(fetcher().wait(reads, 1, EVERYTHING, HOUR_MS))
    await until(lambda: leader._watchers, "it watches")
    waiting.cancel()
    await asyncio.wait([waiting])

    assert not leader._watchers
