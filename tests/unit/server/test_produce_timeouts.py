"""A produce waits for durability as long as its request says, and not longer; its batch stays where it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from log_parts.batches import sent
from log_parts.kafka import Kafka
from log_parts.leaders import HeldWal
from node.wait import eventually
from streamhouse.log.leader import PartitionLeader
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import metadata, produce

PRODUCER = 7
HOUR_MS = 3_600_000
TIMED_OUT = (ErrorCode.REQUEST_TIMED_OUT, -1)
BY_ID = 13


def batch(sequence: int) -> bytes:
    return bytes(sent(producer=(PRODUCER, 0, sequence)))


class Held:
    """A partition whose batches become durable when the test says so, and a connection to it. Beside it, unless the
    requests are of the common shape, goes a batch for the topic's other partition, which is as fast as ever."""

    def __init__(self, broker: Broker, topic: str, kafka: Kafka, *, is_common: bool) -> None:
        self._broker = broker
        self._topic = topic
        self._is_common = is_common
        self.kafka = kafka
        self.wal = HeldWal()
        self.leader: PartitionLeader = self.on_loop(self._hold)

    def _hold(self) -> PartitionLeader:
        topics = self._broker.node.broker.topics
        leader = topics.leaders_of(topics.get(self._topic))[0]
        assert leader is not None
        self._own_wal, leader._wal = leader._wal, self.wal
        return leader

    def on_loop(self, act: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._broker._loop).result(60)

    def let_go(self) -> None:
        def sync() -> None:
            self.wal.sync()
            self.leader._wal = self._own_wal

        self.on_loop(sync)

    def send(self, sequence: int, *, timeout_ms: int = 1) -> None:
        data = [produce.PartitionProduceData(index=0, records=batch(sequence))]
        if not self._is_common:
            data.append(produce.PartitionProduceData(index=1, records=bytes(sent())))
        topic = produce.TopicProduceData(name=self._topic, partition_data=data)
        self.kafka.send(produce, produce.ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=[topic]), 9)

    def receive(self) -> tuple[int, int]:
        """Error code and base offset of the held partition; the other one has never a reason to wait."""
        held, *others = self.kafka.receive().responses[0].partition_responses
        assert all(other.error_code == 0 for other in others)
        return held.error_code, held.base_offset

    def produce(self, sequence: int, *, timeout_ms: int = 1) -> tuple[int, int]:
        self.send(sequence, timeout_ms=timeout_ms)
        return self.receive()


@pytest.fixture(params=[True, False], ids=["one partition", "two partitions"])
def held(request: pytest.FixtureRequest, broker: Broker, topic: str, kafka: Kafka) -> Iterator[Held]:
    held = Held(broker, topic, kafka, is_common=request.param)
    yield held
    held.let_go()


def test_a_batch_that_is_not_durable_in_time_is_answered_all_the_same(held: Held) -> None:
    assert held.produce(0) == TIMED_OUT


def test_it_keeps_its_place_and_becomes_durable_when_it_does(held: Held) -> None:
    assert held.produce(0) == TIMED_OUT
    held.let_go()

    assert held.leader.high_watermark == 1
    assert held.produce(1) == (0, 1)


def test_its_repeat_waits_for_the_same_offset_and_gets_it(held: Held) -> None:
    assert [held.produce(0), held.produce(0)] == [TIMED_OUT] * 2
    held.send(0, timeout_ms=HOUR_MS)
    held.let_go()

    assert held.receive() == (0, 0)
    assert held.produce(0) == (0, 0)
    assert held.leader.next_offset == 1


def test_what_comes_behind_it_is_not_refused(held: Held) -> None:
    assert [held.produce(0), held.produce(1)] == [TIMED_OUT] * 2
    held.send(2, timeout_ms=HOUR_MS)
    held.let_go()

    assert held.receive() == (0, 2)


def test_if_it_is_lost_later_what_comes_behind_it_is_refused_then(held: Held) -> None:
    assert held.produce(0) == TIMED_OUT
    held.on_loop(held.wal.lose)
    held.let_go()

    assert held.produce(1) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert [held.produce(0), held.produce(1)] == [(0, 0), (0, 1)]


def test_an_answer_that_has_waited_too_long_does_not_keep_those_behind_it_waiting(
    held: Held, broker: Broker, topic: str
) -> None:
    held.send(0)
    held.kafka.send(metadata, metadata.MetadataRequest(topics=[]), 9)
    held.kafka.send_produce(topic, sent(), partition=1)

    assert held.receive() == TIMED_OUT
    assert held.kafka.receive().brokers
    assert held.kafka.receive().responses[0].partition_responses[0].error_code == 0


def test_one_with_less_patience_is_answered_in_its_turn(held: Held) -> None:
    """Replies leave in the order of the requests, whoever is ready first."""
    held.send(0, timeout_ms=HOUR_MS)
    held.send(1, timeout_ms=1)
    eventually(lambda: len(held.wal.waiting) == 2, "two batches in the WAL")
    session = next(iter(held._broker.node.kafka._sessions.values()))
    eventually(lambda: held.on_loop(lambda: session._replies[1].buffers is not None), "the second one has its answer")
    held.let_go()

    assert [held.receive(), held.receive()] == [(0, 0), TIMED_OUT]


@pytest.mark.parametrize("timeout_ms", [0, -1, -(2**31)])
def test_no_patience_at_all_is_enough_for_a_disk_that_works(kafka: Kafka, topic: str, timeout_ms: int) -> None:
    """Kafka with one replica does not wait either, and so has nothing to time out."""
    for _ in range(20):
        data = produce.PartitionProduceData(index=0, records=bytes(sent()))
        topics = [produce.TopicProduceData(name=topic, partition_data=[data])]
        answer = kafka.call(produce, produce.ProduceRequest(acks=1, timeout_ms=timeout_ms, topic_data=topics), 9)
        assert answer.responses[0].partition_responses[0].error_code == 0


def test_a_topic_that_is_deleted_while_its_neighbour_waits_does_not_take_the_answer_with_it(
    held: Held, broker: Broker, topic: str
) -> None:
    """Who leads the refused partition is looked up when the answer is made, and nobody does."""
    broker.create_topic(f"{topic}-other", partitions=1)
    topics = broker.node.broker.topics
    other = topics.get(f"{topic}-other")
    refused = topics.leaders_of(other)[0]
    assert refused is not None
    held.on_loop(refused.stop_writing)
    asked = [
        produce.TopicProduceData(
            topic_id=topic_id, partition_data=[produce.PartitionProduceData(index=0, records=batch(0))]
        )
        for topic_id in (other.topic_id, topics.get(topic).topic_id)
    ]
    held.kafka.send(produce, produce.ProduceRequest(acks=-1, timeout_ms=HOUR_MS, topic_data=asked), BY_ID)
    eventually(lambda: bool(held.wal.waiting), "a batch in the WAL")

    asyncio.run_coroutine_threadsafe(topics.delete(other), broker._loop).result(60)
    held.let_go()

    answers = {each.topic_id: each.partition_responses[0] for each in held.kafka.receive().responses}
    assert answers[other.topic_id].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answers[topics.get(topic).topic_id].base_offset == 0
    assert UUID(int=0) not in answers
