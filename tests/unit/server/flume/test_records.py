"""Produce and Fetch through the Flume port, as bytes on a socket."""

from __future__ import annotations

import asyncio
import struct

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from flume_parts import raw
from flume_parts.raw import RawFlume
from log_parts.leaders import HeldWal
from node.wait import HUNG_SECONDS, eventually
from streamhouse.server.flume import produce as flume_produce
from streamhouse.testing import Broker


def test_a_key_decides_the_partition_and_offsets_count_up_in_it(flume: RawFlume, topic: str) -> None:
    assert flume.produce(topic, b"widget", key=b"user-123") == (1, 0, raw.NONE)
    assert flume.produce(topic, b"gadget", key=b"user-123") == (1, 1, raw.NONE)
    assert flume.produce(topic, b"thing", key=b"user-456") == (2, 0, raw.NONE)
    assert flume.fetch(topic, 1, 0) == (raw.NONE, [(0, b"widget"), (1, b"gadget")])
    assert flume.fetch(topic, 2, 0) == (raw.NONE, [(0, b"thing")])


def test_without_a_key_it_is_partition_0(flume: RawFlume, topic: str) -> None:
    assert flume.produce(topic, b"one") == (0, 0, raw.NONE)
    assert flume.produce(topic, b"two") == (0, 1, raw.NONE)


def test_a_partition_that_is_named_wins_over_the_key(flume: RawFlume, topic: str) -> None:
    assert flume.produce(topic, b"x", key=b"user-123", partition=2) == (2, 0, raw.NONE)


def test_a_topic_is_made_when_it_is_first_written_with_three_partitions(
    broker: Broker, flume: RawFlume, topic: str
) -> None:
    assert flume.fetch(topic, 0, 0) == (raw.TOPIC_NOT_FOUND, [])
    assert flume.produce(topic, b"x")[2] == raw.NONE
    assert broker.node.broker.topics.get(topic).partition_count == 3


def test_a_topic_that_another_door_made_keeps_its_partitions(broker: Broker, flume: RawFlume, topic: str) -> None:
    broker.create_topic(topic, partitions=1)
    assert flume.produce(topic, b"x", key=b"user-456") == (0, 0, raw.NONE)


@pytest.mark.parametrize("partition", [3, -2, 2**31 - 1, -(2**31)])
def test_a_partition_that_is_not_there_is_refused(flume: RawFlume, topic: str, partition: int) -> None:
    flume.produce(topic, b"x")
    assert flume.produce(topic, b"x", partition=partition) == (partition, -1, raw.TOPIC_NOT_FOUND)
    assert flume.fetch(topic, partition, 0) == (raw.TOPIC_NOT_FOUND, [])


@pytest.mark.parametrize("name", ["", "a/b", "..", "x" * 250, "ü"])
def test_a_name_that_no_topic_may_have_is_refused(flume: RawFlume, name: str) -> None:
    assert flume.produce(name, b"x") == (-1, -1, raw.UNKNOWN)
    assert flume.fetch(name, 0, 0)[0] == raw.TOPIC_NOT_FOUND


def test_a_name_that_is_no_text_is_refused(flume: RawFlume) -> None:
    answer = flume.call(raw.PRODUCE, b"\0\x02\xff\xfe" + struct.pack(">iii", 0, 0, 0))
    assert struct.unpack(">iqh", answer) == (0, -1, raw.UNKNOWN)


def test_offsets_outside_the_log_are_refused_and_its_end_is_empty(flume: RawFlume, topic: str) -> None:
    flume.produce(topic, b"x")
    assert flume.fetch(topic, 0, 1) == (raw.NONE, [])
    assert flume.fetch(topic, 0, 2) == (raw.OFFSET_OUT_OF_RANGE, [])
    assert flume.fetch(topic, 0, -1) == (raw.OFFSET_OUT_OF_RANGE, [])


def test_a_fetch_stops_at_its_limit_but_not_before_one_record(broker: Broker, flume: RawFlume, topic: str) -> None:
    """Also in the middle of a batch, which Kafka's readers get whole."""
    broker.create_topic(topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 500})
    for number in range(100):
        producer.produce(topic, bytes([number]) * 88, partition=0)
    assert producer.flush(HUNG_SECONDS) == 0
    read: list[int] = []
    for limit in (300, 100, 1, 0, -5):
        _, records = flume.fetch(topic, 0, len(read), max_bytes=limit)
        assert 1 <= len(records) <= max(limit // 100, 1)
        read += [offset for offset, _ in records]
    assert read == list(range(len(read)))


def test_a_fetch_may_start_with_the_oldest_record(broker: Broker, flume: RawFlume, topic: str) -> None:
    for number in range(3):
        flume.produce(topic, b"%d" % number)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_records([confluent_kafka.TopicPartition(topic, 0, 2)])[
        confluent_kafka.TopicPartition(topic, 0)
    ].result(HUNG_SECONDS)
    assert flume.fetch(topic, 0, 0) == (raw.OFFSET_OUT_OF_RANGE, [])
    assert flume.fetch(topic, 0, -2) == (raw.NONE, [(2, b"2")])


def test_many_requests_at_once_are_answered_by_their_ids_and_stored_in_order(flume: RawFlume, topic: str) -> None:
    flume.produce(topic, b"first")
    flume.socket.sendall(
        b"".join(raw.request(raw.PRODUCE, 5000 + number, raw.produce(topic, b"%d" % number)) for number in range(3000))
    )
    answers = dict(flume.receive() for _ in range(3000))
    assert [struct.unpack(">iqh", answers[5000 + number]) for number in range(3000)] == [
        (0, 1 + number, raw.NONE) for number in range(3000)
    ]
    payloads = [payload for _, payload in flume.fetch(topic, 0, 1, max_bytes=2**20)[1]]
    assert payloads == [b"%d" % number for number in range(3000)]


def test_a_fetch_sees_what_was_written_before_it_on_its_connection(flume: RawFlume, topic: str) -> None:
    """Also when nobody waited for the answer, and when the topic had to be made first."""
    flume.socket.sendall(
        raw.request(raw.PRODUCE, 1, raw.produce(topic, b"a"))
        + raw.request(raw.FETCH, 2, raw.fetch(topic, 0, 0))
        + raw.request(raw.PRODUCE, 3, raw.produce(topic, b"b"))
        + raw.request(raw.FETCH, 4, raw.fetch(topic, 0, 0))
    )
    answers = dict(flume.receive() for _ in range(4))
    assert struct.unpack_from(">hi", answers[2]) == (raw.NONE, 1)
    assert struct.unpack_from(">hi", answers[4]) == (raw.NONE, 2)


def test_records_that_arrive_together_are_cut_at_the_topics_limit(flume: RawFlume, topic: str) -> None:
    flume.produce(topic, b"first")
    large = [bytes([number]) * 100_000 for number in range(5)]
    flume.socket.sendall(
        b"".join(raw.request(raw.PRODUCE, number, raw.produce(topic, payload)) for number, payload in enumerate(large))
    )
    answers = dict(flume.receive() for _ in range(5))
    assert [struct.unpack(">iqh", answers[number]) for number in range(5)] == [
        (0, 1 + number, 0) for number in range(5)
    ]


def test_a_record_above_the_topics_limit_is_refused_and_the_next_is_not(flume: RawFlume, topic: str) -> None:
    flume.produce(topic, b"first")
    assert flume.produce(topic, b"x" * 300_000) == (-1, -1, raw.UNKNOWN)
    assert flume.produce(topic, b"k", key=b"x" * 300_000) == (-1, -1, raw.UNKNOWN)
    assert flume.produce(topic, b"next") == (0, 1, raw.NONE)


def test_a_long_key_has_the_partition_of_its_hash(flume: RawFlume, topic: str) -> None:
    from streamhouse.client.flume import HashPartitioner

    key = b"long" * 5000
    assert flume.produce(topic, b"x", key=key) == (HashPartitioner().partition(key, 3), 0, raw.NONE)


def test_kafka_reads_what_flume_wrote_and_flume_what_kafka_wrote(broker: Broker, flume: RawFlume, topic: str) -> None:
    flume.produce(topic, b"from flume", key=b"user-123")
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd"})
    producer.produce(topic, b"from kafka", b"key", 1, headers=[("h", b"v")])
    producer.produce(topic, None, b"key", 1)
    assert producer.flush(HUNG_SECONDS) == 0
    assert flume.fetch(topic, 1, 0) == (raw.NONE, [(0, b"from flume"), (1, b"from kafka"), (2, b"")])
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic})
    consumer.assign([confluent_kafka.TopicPartition(topic, 1, 0)])
    read = consumer.consume(1, HUNG_SECONDS)[0]
    consumer.close()
    assert (read.key(), read.value(), read.offset(), read.headers()) == (b"user-123", b"from flume", 0, None)


def test_an_api_that_is_not_there_is_answered_and_the_connection_goes_on(flume: RawFlume, topic: str) -> None:
    assert flume.call(99, b"whatever") == struct.pack(">h", raw.UNKNOWN)
    assert flume.call(-1, b"") == struct.pack(">h", raw.UNKNOWN)
    assert flume.produce(topic, b"x")[2] == raw.NONE


def test_what_this_node_stops_leading_is_sent_on_and_not_refused(broker: Broker, flume: RawFlume, topic: str) -> None:
    """The lease is over just now, and back a moment later: the producer notices nothing but the wait."""
    assert flume.produce(topic, b"before") == (0, 0, raw.NONE)
    leader = broker.node.broker.topics.leader(broker.node.broker.topics.get(topic), 0)
    until_ms, leader.writable_until_ms = leader.writable_until_ms, 0
    flume.socket.sendall(
        b"".join(raw.request(raw.PRODUCE, number, raw.produce(topic, b"%d" % number)) for number in range(3))
    )
    assert broker.node.doors.flume is not None
    sessions = broker.node.doors.flume._sessions
    eventually(lambda: any(session._is_working for session in list(sessions.values())), "produces that are sent on")
    leader.writable_until_ms = until_ms
    answers = dict(flume.receive() for _ in range(3))
    assert [struct.unpack(">iqh", answers[number]) for number in range(3)] == [(0, 1 + n, raw.NONE) for n in range(3)]


def test_a_record_that_does_not_become_durable_is_answered_all_the_same(
    broker: Broker, flume: RawFlume, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And once: what becomes of it later is told to nobody."""
    broker.create_topic(topic, partitions=1)
    monkeypatch.setattr(flume_produce, "DEFAULT_TIMEOUT_MS", 1)
    leader = broker.node.broker.topics.leaders_of(broker.node.broker.topics.get(topic))[0]
    assert leader is not None
    own_wal, held = leader._wal, HeldWal()
    leader._wal = held

    assert flume.produce(topic, b"held") == (-1, -1, raw.UNKNOWN)

    async def let_go() -> None:
        held.sync()
        leader._wal = own_wal

    asyncio.run_coroutine_threadsafe(let_go(), broker._loop).result(HUNG_SECONDS)
    assert flume.produce(topic, b"free") == (0, 1, raw.NONE)
    assert flume.fetch(topic, 0, 0) == (raw.NONE, [(0, b"held"), (1, b"free")])
