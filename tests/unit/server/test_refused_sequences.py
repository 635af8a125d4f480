"""Batches behind one that was refused: they share its fate until it comes again, whoever leads by then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from log_parts.batches import header_of, sent
from log_parts.kafka import Kafka
from log_parts.leaders import FOREVER_MS, HeldWal
from node.wait import eventually
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import BatchTooLarge, NotFound, NotLeader, StorageUnavailable, StreamHouseError
from streamhouse.server.kafka import refused_sequences
from streamhouse.server.kafka.refused_sequences import RefusedSequences
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import produce

PRODUCER = 7
LAST = 2**31 - 1
PLACE = (b"orders", 0)


def batch(sequence: int, *, epoch: int = 0, producer_id: int = PRODUCER) -> memoryview:
    return sent(producer=(producer_id, epoch, sequence))


# --- what is remembered ---


def is_refused(refused: RefusedSequences, sequence: int, **options: int) -> bool:
    try:
        refused.check(PLACE, header_of(batch(sequence, **options)))
    except StreamHouseError:
        return True
    return False


@pytest.mark.parametrize("problem", [NotLeader("-"), StorageUnavailable("-"), NotFound("-")])
def test_what_comes_behind_a_refused_batch_is_refused_with_its_reason(problem: StreamHouseError) -> None:
    refused = RefusedSequences()
    refused.note(PLACE, header_of(batch(4)), problem)

    with pytest.raises(type(problem), match="before this one was refused"):
        refused.check(PLACE, header_of(batch(5)))


def test_a_reason_that_stays_is_nothing_that_others_wait_for() -> None:
    refused = RefusedSequences()
    refused.note(PLACE, header_of(batch(4)), BatchTooLarge("-"))

    assert not is_refused(refused, 5)


@pytest.mark.parametrize("sequence", [3, 4])
def test_the_refused_batch_itself_or_an_earlier_one_ends_it(sequence: int) -> None:
    refused = RefusedSequences()
    refused.note(PLACE, header_of(batch(4)), NotLeader("-"))

    assert not is_refused(refused, sequence)
    assert not is_refused(refused, 5)
    assert not refused.waiting


def test_another_epoch_producer_or_partition_is_another_matter() -> None:
    refused = RefusedSequences()
    refused.note(PLACE, header_of(batch(4)), NotLeader("-"))

    assert not is_refused(refused, 5, producer_id=PRODUCER + 1)
    refused.check((b"orders", 1), header_of(batch(5)))
    refused.check((b"sales", 0), header_of(batch(5)))
    assert is_refused(refused, 5)
    assert not is_refused(refused, 0, epoch=1)


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    refused = RefusedSequences()
    refused.note(PLACE, header_of(batch(LAST)), NotLeader("-"))

    assert is_refused(refused, 0)


def test_batches_without_a_producer_are_not_remembered() -> None:
    refused = RefusedSequences()
    refused.note(PLACE, header_of(sent()), NotLeader("-"))

    assert not refused.waiting


def test_a_name_that_no_topic_can_have_is_not_remembered() -> None:
    refused = RefusedSequences()
    refused.note((b"x" * 250, 0), header_of(batch(4)), NotFound("-"))

    assert not refused.waiting


def test_not_more_is_remembered_than_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_sequences, "_MAX_PRODUCERS", 3)
    refused = RefusedSequences()
    for producer_id in range(5):
        refused.note(PLACE, header_of(batch(0, producer_id=producer_id)), NotLeader("-"))

    assert [is_refused(refused, 1, producer_id=producer_id) for producer_id in range(5)] == [False] * 2 + [True] * 3


# --- on a connection ---


class Door:
    """A connection to one partition whose leader the test stops and lets go on."""

    def __init__(self, broker: Broker, topic: str, kafka: Kafka, *, is_common: bool) -> None:
        self._broker = broker
        self._topic = topic
        self._kafka = kafka
        self._is_common = is_common
        self._leader: PartitionLeader = self.on_loop(lambda: self._find_leader())

    def _find_leader(self) -> PartitionLeader:
        leader = self._broker.node.broker.topics.leaders_of(self._broker.node.broker.topics.get(self._topic))[0]
        assert leader is not None
        return leader

    def on_loop(self, act: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._broker._loop).result(60)

    def stop(self) -> None:
        self.on_loop(self._leader.stop_writing)

    def go_on(self) -> None:
        self.on_loop(lambda: self._leader.resume_writing(FOREVER_MS))

    def take_over(self) -> None:
        """As if another leader had been there until now."""
        self.on_loop(lambda: self._leader.producers.take_over(self._leader.next_offset))

    def hold_wal(self) -> tuple[HeldWal, Callable[[], None]]:
        """A WAL in which nothing becomes durable, and how to end that."""
        held, own = HeldWal(), self._leader._wal
        self.on_loop(lambda: setattr(self._leader, "_wal", held))
        return held, lambda: self.on_loop(lambda: setattr(self._leader, "_wal", own))

    def send(self, sequence: int) -> None:
        data = [produce.PartitionProduceData(index=0, records=bytes(batch(sequence)))]
        if not self._is_common:
            data.append(produce.PartitionProduceData(index=1, records=bytes(sent())))
        topic = produce.TopicProduceData(name=self._topic, topic_id=UUID(int=0), partition_data=data)
        self._kafka.send(produce, produce.ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]), 9)

    def receive(self) -> tuple[int, int]:
        """Error code and base offset."""
        answer = self._kafka.receive().responses[0].partition_responses[0]
        return answer.error_code, answer.base_offset

    def produce(self, sequence: int) -> tuple[int, int]:
        self.send(sequence)
        return self.receive()


@pytest.fixture(params=[True, False], ids=["one partition", "two partitions"])
def door(request: pytest.FixtureRequest, broker: Broker, topic: str, kafka: Kafka) -> Iterator[Door]:
    door = Door(broker, topic, kafka, is_common=request.param)
    yield door
    door.go_on()


REFUSED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_an_unknown_producers_second_batch_is_not_taken_for_its_first(door: Door) -> None:
    """Taken, it would be acknowledged, and the client would conclude that the first is stored as well."""
    door.stop()
    assert door.produce(0) == REFUSED
    door.go_on()

    assert [door.produce(sequence) for sequence in (1, 2)] == [REFUSED] * 2
    assert [door.produce(sequence) for sequence in (0, 1, 2)] == [(0, 0), (0, 1), (0, 2)]


def test_a_known_producer_is_not_told_that_it_is_out_of_order(door: Door) -> None:
    """It would begin a new epoch, and send again what may be stored."""
    assert door.produce(0) == (0, 0)
    door.stop()
    assert door.produce(1) == REFUSED
    door.go_on()

    assert [door.produce(sequence) for sequence in (2, 3)] == [REFUSED] * 2
    assert [door.produce(sequence) for sequence in (1, 2, 3)] == [(0, 1), (0, 2), (0, 3)]


def test_a_client_that_has_begun_again_is_judged_by_itself(door: Door) -> None:
    assert door.produce(0) == (0, 0)
    door.stop()
    assert door.produce(1) == REFUSED
    door.go_on()
    assert door.produce(2) == REFUSED

    assert door.produce(2) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert door.produce(1) == (0, 1)


def test_a_refusal_is_refused_again_with_those_behind_it(door: Door) -> None:
    door.stop()
    assert [door.produce(sequence) for sequence in (0, 1, 0)] == [REFUSED] * 3
    door.go_on()

    assert door.produce(1) == REFUSED
    assert [door.produce(sequence) for sequence in (0, 1)] == [(0, 0), (0, 1)]


def test_what_comes_behind_batches_that_did_not_become_durable_is_refused(door: Door) -> None:
    held, let_go = door.hold_wal()
    door.send(0)
    door.send(1)
    eventually(lambda: len(held.waiting) == 2, "two batches in the WAL")
    door.on_loop(held.lose)
    lost = (ErrorCode.KAFKA_STORAGE_ERROR, -1)
    assert [door.receive(), door.receive()] == [lost] * 2
    let_go()

    assert door.produce(2) == lost
    assert [door.produce(sequence) for sequence in (0, 1, 2)] == [(0, 0), (0, 1), (0, 2)]


def test_a_batch_that_is_awaited_by_a_new_leader_holds_up_those_behind_it(door: Door) -> None:
    door.take_over()

    assert [door.produce(sequence) for sequence in (5, 6, 7)] == [REFUSED] * 3
    assert [door.produce(sequence) for sequence in (5, 6, 7)] == [(0, 0), (0, 1), (0, 2)]


def test_a_topic_that_the_node_hears_of_between_two_batches_begins_with_the_first(broker: Broker, kafka: Kafka) -> None:
    unknown = "not-yet"
    assert kafka.produce(unknown, batch(0)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.create_topic(unknown, partitions=1)

    assert kafka.produce(unknown, batch(1)).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [kafka.produce(unknown, batch(sequence)).base_offset for sequence in (0, 1)] == [0, 1]
