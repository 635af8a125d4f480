"""Writing one batch and waiting for it: what is refused was not stored, what is not known is said to be so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from log_parts.batches import real, sent
from log_parts.engines import finishes
from log_parts.leaders import Partition, log_config
from log_parts.waiting import until
from streamhouse.broker.admission import Admission
from streamhouse.broker.produce import produce
from streamhouse.format.batch import check_produced
from streamhouse.log.leader import Acknowledgement, Appended, PartitionLeader
from streamhouse.model.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidTimestamps,
    NotFound,
    NotLeader,
    OutcomeUnknown,
    StorageUnavailable,
    Unavailable,
)
from streamhouse.model.topic import LogConfig

HUNG_MS = 60_000


class HeldThreads(Executor):
    """Work is done when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        outcome: Future[Any] = Future()
        self.waiting.append(lambda: outcome.set_result(work(*arguments, **options)))
        return outcome

    def work(self) -> None:
        self.waiting.pop(0)()


class Node:
    """What writing needs of a broker, around one partition whose WAL syncs when the test says so."""

    def __init__(self, config: LogConfig | None = None, **options: int) -> None:
        self.threads = HeldThreads()
        self.partition = Partition(config=config, **options)
        self.leader = self.partition.leader
        self.wal = self.partition.wal
        self.buffer = self.partition.node_buffer
        self.clock = self.partition.clock
        self.admission = Admission(self.threads, self.clock)

    def produce(self, leader: PartitionLeader, batch: memoryview, acknowledgement: Acknowledgement) -> Appended:
        return leader.append(batch, check_produced(batch), acknowledgement)

    def commit_appends(self) -> None:
        self.wal.kick()

    def start(self, batch: bytes | memoryview, *, timeout_ms: int = HUNG_MS) -> asyncio.Future[Appended]:
        return asyncio.ensure_future(produce(self, self.leader, batch, timeout_ms=timeout_ms))


async def test_it_is_answered_when_it_is_durable_and_not_before() -> None:
    node = Node()
    call = node.start(bytes(sent()))
    await until(lambda: node.wal.kicks, "the WAL is told to sync")
    assert not call.done()

    node.wal.sync()

    assert await finishes(call, "the produce") == (0, -1)


async def test_batches_are_appended_in_the_order_of_the_calls() -> None:
    node = Node()
    calls = [node.start(sent(count=2)) for _ in range(3)]
    await until(lambda: len(node.wal.waiting) == 3, "all are appended")
    node.wal.sync()

    assert [(await call)[0] for call in calls] == [0, 2, 4]


async def test_batches_that_must_be_looked_at_are_appended_in_the_order_of_the_calls() -> None:
    """Also one for which the header is enough, if it comes behind."""
    node = Node(config=log_config(message_timestamp_after_max_ms="1000"))
    now_ms = node.clock.now_ms()
    late = real(b"late", timestamps=(now_ms + 2_000,))
    good = real(b"good", timestamps=(now_ms,))
    calls = [node.start(batch) for batch in (late, good, late, good)]
    await until(lambda: len(node.threads.waiting) == 1, "the first is looked at")
    assert node.leader.next_offset == 0

    for _ in range(4):
        await until(lambda: node.threads.waiting, "the next is looked at")
        node.threads.work()
    await until(lambda: len(node.wal.waiting) == 2, "the good ones are appended")
    node.wal.sync()

    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert [outcomes[1], outcomes[3]] == [(0, -1), (1, -1)]
    assert isinstance(outcomes[0], InvalidTimestamps)
    assert isinstance(outcomes[2], InvalidTimestamps)


async def test_a_look_that_takes_too_long_has_stored_nothing() -> None:
    node = Node(config=log_config(cleanup_policy="compact"))
    with pytest.raises(Unavailable, match="looked at"):
        await node.start(real(b"value"), timeout_ms=10)
    assert node.leader.next_offset == 0


async def test_what_is_not_a_batch_is_refused() -> None:
    node = Node()
    with pytest.raises(CorruptBatch):
        await node.start(b"nonsense")

    assert node.leader.next_offset == 0


async def test_a_batch_above_the_topics_limit_is_refused() -> None:
    with pytest.raises(BatchTooLarge):
        await Node().start(sent(2_000_000))


async def test_without_the_lease_it_is_refused_and_surely_not_stored() -> None:
    node = Node()
    node.leader.writable_until_ms = 0

    with pytest.raises(NotLeader):
        await node.start(sent())
    assert node.leader.next_offset == 0


@pytest.mark.parametrize("problem", [NotLeader("deposed"), StorageUnavailable("the disk is gone")])
async def test_what_fails_after_the_append_may_be_stored_all_the_same(problem: Exception) -> None:
    node = Node()
    call = node.start(sent())
    await until(lambda: node.wal.waiting, "it is appended")
    node.wal.lose(problem)

    with pytest.raises(OutcomeUnknown, match=problem.message):
        await finishes(call, "the produce")


async def test_a_topic_that_is_deleted_meanwhile_is_gone_for_sure() -> None:
    node = Node()
    call = node.start(sent())
    await until(lambda: node.wal.waiting, "it is appended")
    node.leader.remove(NotFound("topic 'orders' was deleted"))

    with pytest.raises(NotFound):
        await finishes(call, "the produce")


async def test_a_sync_that_takes_too_long_leaves_the_outcome_open() -> None:
    node = Node()
    with pytest.raises(OutcomeUnknown):
        await finishes(node.start(sent(), timeout_ms=50), "the time-out")

    node.wal.sync()  # nobody waits for it any more
    assert node.leader.high_watermark == 1


async def test_a_caller_that_is_cancelled_does_not_take_its_batch_back() -> None:
    node = Node()
    call = node.start(sent())
    await until(lambda: node.wal.waiting, "it is appended")
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call

    node.wal.sync()
    assert node.leader.high_watermark == 1


@pytest.mark.parametrize("full", ["partition_buffer_bytes", "buffer_bytes"])
async def test_a_full_buffer_makes_the_caller_wait(full: str) -> None:
    node = Node(**{full: 150})
    first = node.start(sent(200))
    await until(lambda: node.wal.waiting, "the first is appended")
    second = node.start(sent(100))
    node.wal.sync()
    await finishes(first, "the first")
    assert (second.done(), node.leader.next_offset) == (False, 1)

    node.leader._give_back_buffer(200)  # as an upload does
    await until(lambda: node.wal.waiting, "the second is appended")
    node.wal.sync()

    assert await finishes(second, "the second") == (1, -1)


async def test_a_buffer_that_stays_full_is_unavailable_and_surely_nothing_was_stored() -> None:
    node = Node(buffer_bytes=150)
    await until_synced(node)

    with pytest.raises(Unavailable) as caught:
        await finishes(node.start(sent(100), timeout_ms=50), "the time-out")

    assert not isinstance(caught.value, OutcomeUnknown)
    assert node.leader.next_offset == 1
    assert not node.buffer._waiting


async def test_an_idempotent_producers_repeat_gets_its_first_offset() -> None:
    node = Node()
    batch = sent(producer=(9, 0, 0))
    first = node.start(batch)
    await until(lambda: node.wal.waiting, "it is appended")
    second = node.start(batch)
    node.wal.sync()

    assert await finishes(first, "the first") == await finishes(second, "the repeat") == (0, -1)
    assert node.leader.next_offset == 1


async def until_synced(node: Node) -> None:
    first = node.start(sent(200))
    await until(lambda: node.wal.waiting, "the first is appended")
    node.wal.sync()
    await finishes(first, "the first")
