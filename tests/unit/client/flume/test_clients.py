"""Flume's client library against a broker: as its document shows it, and many messages at once."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flume_parts.members import remove
from log_parts.kafka import Kafka
from node.wait import HUNG_SECONDS, eventually
from streamhouse.client.flume import (
    EARLIEST,
    AsyncConsumer,
    AsyncGroupConsumer,
    AsyncProducer,
    Consumer,
    GroupConsumer,
    GroupMessage,
    HashPartitioner,
    Message,
    Producer,
    ProduceResult,
    RoundRobinPartitioner,
    UnknownMember,
)
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange, OutcomeUnknown, Unavailable
from streamhouse.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(flume=True, http=True) as broker:
        yield broker


@pytest.fixture
def address(broker: Broker) -> str:
    return broker.flume_address


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"topic-{abs(hash(request.node.nodeid))}"


def test_a_port_that_is_no_flume_port_is_told_apart(broker: Broker) -> None:
    http = broker.endpoint.removeprefix("http://")
    for address, what in ((http, "it is an HTTP server"), (broker.bootstrap, "it closed the connection")):
        with Consumer(address, "orders") as consumer, pytest.raises(Unavailable) as refused:
            consumer.fetch()
        assert what in refused.value.message
        assert refused.value.hint == "is it a Flume port? That of `streamhouse serve` is 9094"


def test_the_documents_producer_and_consumer(address: str, topic: str) -> None:
    with Producer(address) as producer:
        assert producer.produce(topic, b'{"item": "widget"}') == ProduceResult(partition=0, offset=0)
        assert producer.produce_with_key(topic, b"user-123", b'{"item": "gadget"}') == ProduceResult(1, 0)
        assert producer.produce_to_partition(topic, 2, None, b'{"item": "thing"}') == ProduceResult(2, 0)
    with Consumer(address, topic, 0, 0) as consumer:
        assert consumer.fetch(65536) == [Message(offset=0, payload=b'{"item": "widget"}')]
        assert (consumer.offset, consumer.partition) == (1, 0)
        assert consumer.fetch() == []
        consumer.seek(0)
        assert [message.offset for message in consumer.fetch()] == [0]


def test_many_messages_are_on_their_way_at_once_and_stay_in_order(address: str, topic: str) -> None:
    payloads = [b"%d" % number for number in range(5000)]
    with Producer(address, max_in_flight=300) as producer:
        placed = producer.produce_many(topic, payloads)
        keyed = producer.produce_many(topic, [(b"user-123", b"a"), (None, b"b"), (b"user-456", b"c")])
    assert placed == [ProduceResult(0, offset) for offset in range(5000)]
    assert keyed == [ProduceResult(1, 0), ProduceResult(0, 5000), ProduceResult(2, 0)]
    read: list[bytes] = []
    with Consumer(address, topic, 0, EARLIEST) as consumer:
        while messages := consumer.fetch():
            read += [message.payload for message in messages]
    assert read == [*payloads, b"b"]


def test_a_partitioner_of_ones_own_decides(address: str, topic: str) -> None:
    with Producer(address, partitioner=RoundRobinPartitioner(), partition_count=3) as producer:
        assert [producer.produce(topic, b"x").partition for _ in range(6)] == [0, 1, 2, 0, 1, 2]
    with Producer(address, partitioner=HashPartitioner(), partition_count=3) as producer:
        assert producer.produce_with_key(topic, b"user-123", b"x").partition == 1
    with pytest.raises(InvalidInput, match="number of partitions"):
        Producer(address, partitioner=HashPartitioner())
    with pytest.raises(InvalidInput, match="0 is not"):
        RoundRobinPartitioner().partition(None, 0)


def test_refusals_are_errors_of_their_kind_and_the_connection_goes_on(address: str, topic: str) -> None:
    with Producer(address) as producer:
        producer.produce(topic, b"x")
        with pytest.raises(NotFound):
            producer.produce_to_partition(topic, 3, None, b"x")
        with pytest.raises(NotFound):
            Consumer(address, "not-" + topic).fetch()
        with Consumer(address, topic, 0, 5) as consumer, pytest.raises(OffsetOutOfRange):
            consumer.fetch()
        assert producer.produce(topic, b"y").offset == 1


def test_a_failure_among_many_is_raised_when_all_are_settled(address: str, topic: str) -> None:
    with Producer(address, partitioner=RoundRobinPartitioner(), partition_count=4) as producer:
        with pytest.raises(NotFound):
            producer.produce_many(topic, [b"0", b"1", b"2", b"nowhere", b"4"])
        assert producer.produce_to_partition(topic, 0, None, b"after") == ProduceResult(0, 2)


def test_a_broker_that_hangs_up_leaves_the_outcome_unknown() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def take_and_hang_up() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1)

        thread = threading.Thread(target=take_and_hang_up)
        thread.start()
        with Producer(f"127.0.0.1:{server.getsockname()[1]}") as producer:
            with pytest.raises(OutcomeUnknown):
                producer.produce("t", b"x")
            with pytest.raises(Unavailable):
                producer.produce("t", b"x")
        thread.join(HUNG_SECONDS)


def test_nobody_there_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(Unavailable, match="cannot connect"):
        Producer(address)


def test_a_group_divides_partitions_and_goes_on_where_it_committed(address: str, topic: str) -> None:
    with Producer(address) as producer:
        for partition in range(3):
            producer.produce_to_partition(topic, partition, None, b"%d" % partition)
    with GroupConsumer(address, topic, [topic]) as consumer:
        assert consumer.assignment == ((topic, 0), (topic, 1), (topic, 2))
        assert sorted(consumer.poll()) == [GroupMessage(topic, number, 0, b"%d" % number) for number in range(3)]
        assert consumer.committed(topic, 0) is None
        consumer.commit()
        assert consumer.committed(topic, 0) == 1
        assert consumer.poll(max_wait_ms=0) == []
        consumer.seek(topic, 2, 0)
        assert consumer.poll() == [GroupMessage(topic, 2, 0, b"2")]
    with Producer(address) as producer:
        producer.produce_to_partition(topic, 1, None, b"new")
    with GroupConsumer(address, topic, [topic]) as consumer:
        assert consumer.poll(max_wait_ms=60_000) == [GroupMessage(topic, 1, 1, b"new")]


def test_members_share_and_take_over(address: str, topic: str) -> None:
    with Producer(address) as producer:
        producer.produce(topic, b"x")

    def owned(*members: GroupConsumer) -> list[int]:
        for member in members:
            member.poll(max_wait_ms=0)
        return sorted(partition for member in members for _, partition in member.assignment)

    with GroupConsumer(address, topic, [topic], session_timeout_ms=4000) as first:
        alone_since = first.generation
        with GroupConsumer(address, topic, [topic], session_timeout_ms=4000) as second:
            eventually(lambda: owned(first, second) == [0, 1, 2] and second.assignment, "a division")
            assert 0 < len(first.assignment) < 3
        eventually(lambda: owned(first) == [0, 1, 2], "all for who is left")
        assert first.generation > alone_since


def test_an_expelled_member_may_not_commit_and_joins_anew_with_the_next_poll(broker: Broker, topic: str) -> None:
    async def scenario() -> None:
        address = broker.flume_address
        async with AsyncProducer(address) as producer:
            await producer.produce(topic, b"x")
        async with AsyncGroupConsumer(address, topic, [topic], session_timeout_ms=2_000) as member:
            before = member.member_id
            assert len(await member.poll()) == 1
            await member.commit()
            await member._tasks.cancel()  # its heartbeats
            while True:
                try:
                    await member.commit()
                except UnknownMember:
                    break
            member.seek(topic, 0, 0)
            member._must_join = True  # what the next heartbeat would have said
            async with AsyncProducer(address) as producer:
                await producer.produce(topic, b"y")
            again = await member.poll(max_wait_ms=60_000)
            assert [message.offset for message in again] == [1], "it goes on where the group is, not where it was"
            assert member.member_id != before

    asyncio.run(scenario())


@contextmanager
def paused(consumer: GroupConsumer) -> Iterator[None]:
    """Its thread stands still, as in a process that was stopped or a machine that swaps: no heartbeat goes out."""
    stopped, go_on = threading.Event(), threading.Event()

    def stand_still() -> None:
        stopped.set()
        go_on.wait(HUNG_SECONDS)

    consumer._thread._loop.call_soon_threadsafe(stand_still)
    assert stopped.wait(HUNG_SECONDS)
    try:
        yield
    finally:
        go_on.set()


def test_a_member_that_was_paused_is_given_nothing_of_what_others_have_and_joins_anew(address: str, topic: str) -> None:
    with Producer(address) as producer:
        for partition in range(3):
            producer.produce_to_partition(topic, partition, None, b"before")
    with (
        GroupConsumer(address, topic, [topic], session_timeout_ms=1_000) as sleeper,
        GroupConsumer(address, topic, [topic]) as lively,
    ):
        before = sleeper.member_id
        with paused(sleeper):
            done: set[int] = set()

            def takes_over() -> bool:
                done.update(message.partition for message in lively.poll(max_wait_ms=0))
                return done == {0, 1, 2}

            eventually(takes_over, "all partitions to be the other's")
            lively.commit()
            with Producer(address) as producer:
                for partition in range(3):
                    producer.produce_to_partition(topic, partition, None, b"after")
        # It still believes that all of them are its own, from their beginning.
        found: list[GroupMessage] = []

        def shared() -> bool:
            found.extend(sleeper.poll(max_wait_ms=0))
            lively.poll(max_wait_ms=0)
            return bool(sleeper.assignment) and sleeper.member_id != before and bool(found)

        eventually(shared, "a share of the partitions and a message of it")
        assert {message.payload for message in found} == {b"after"}, "the group was told that the others are done"


def test_a_member_whose_commit_is_refused_joins_again_with_the_next_poll(broker: Broker, topic: str) -> None:
    """Without waiting for a heartbeat to say so."""
    with Producer(broker.flume_address) as producer:
        producer.produce(topic, b"x")
    with GroupConsumer(broker.flume_address, topic, [topic], session_timeout_ms=40_000) as member:
        before = member.member_id
        assert len(member.poll()) == 1
        with Kafka(broker.bootstrap) as kafka:
            remove(kafka, topic, before)
        with pytest.raises(UnknownMember):
            member.commit()
        again = member.poll(max_wait_ms=60_000)
        assert [message.offset for message in again] == [0]
        assert member.member_id != before


def test_async_clients_are_used_with_async_with(address: str, topic: str) -> None:
    async def scenario() -> None:
        async with AsyncProducer(address) as producer:
            sent = [await producer.send(topic, b"%d" % number) for number in range(10)]
            assert [(await result).offset for result in sent] == list(range(10))
        async with AsyncConsumer(address, topic) as consumer:
            assert len(await consumer.fetch()) == 10
        with pytest.raises(Unavailable, match="not started"):
            await consumer.fetch()
        with pytest.raises(Unavailable, match="not started"):
            await producer.produce(topic, b"x")

    asyncio.run(scenario())
