"""Time that passes at once in a broker: retention, sessions and offsets, before the call returns."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from log_parts.kafka import Kafka
from node.wait import eventually
from streamhouse.model.errors import InvalidInput
from streamhouse.testing import Broker

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS


def start_of(broker: Broker, topic: str = "orders") -> int:
    with Kafka(broker.bootstrap) as kafka:
        return int(kafka.offset_of(topic, -2).offset)


def produce(broker: Broker, value: bytes, topic: str = "orders") -> None:
    """With the time that it is by now."""
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value, timestamp=broker.now_ms())
    assert producer.flush(30) == 0


def test_what_retention_deletes_in_that_time_is_gone_afterwards(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders", config={"retention.ms": str(HOUR_MS)})
    produce(streamhouse_broker, b"old")

    streamhouse_broker.faults.pass_time(HOUR_MS + 1)

    assert start_of(streamhouse_broker) == 1


def test_what_is_younger_stays(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders", config={"retention.ms": str(HOUR_MS)})
    produce(streamhouse_broker, b"old")
    streamhouse_broker.faults.pass_time(50 * MINUTE_MS)
    assert start_of(streamhouse_broker) == 0
    produce(streamhouse_broker, b"young")

    streamhouse_broker.faults.pass_time(15 * MINUTE_MS)

    assert start_of(streamhouse_broker) == 1
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        assert [record.value for record in kafka.read("orders", offset=1)] == [b"young"]


def test_a_retention_shorter_than_it_takes_to_make_a_segment_counts_too(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders", config={"retention.ms": "1000"})
    produce(streamhouse_broker, b"old")

    streamhouse_broker.faults.pass_time(2_000)

    assert start_of(streamhouse_broker) == 1


def test_a_compacted_topic_keeps_everything_and_so_does_one_without_a_limit(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("forever", config={"retention.ms": "-1"})
    streamhouse_broker.create_topic("compacted", config={"cleanup.policy": "compact", "retention.ms": "1000"})
    producer = Producer({"bootstrap.servers": streamhouse_broker.bootstrap})
    for topic in ("forever", "compacted"):
        producer.produce(topic, b"value", key=b"key")
    assert producer.flush(30) == 0

    streamhouse_broker.faults.pass_time(30 * DAY_MS)

    assert start_of(streamhouse_broker, "forever") == 0
    assert start_of(streamhouse_broker, "compacted") == 0


def test_samples_with_old_timestamps_stay_while_no_time_passes(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders")
    producer = Producer({"bootstrap.servers": streamhouse_broker.bootstrap})
    producer.produce("orders", b"sample", timestamp=1_500_000_000_000)
    assert producer.flush(30) == 0
    streamhouse_broker.flush()

    streamhouse_broker.faults.jump_clock(MINUTE_MS)

    assert start_of(streamhouse_broker) == 0


def test_samples_go_with_their_segment_however_little_time_passes_then(streamhouse_broker: Broker) -> None:
    for topic, retention in (("long", 7 * DAY_MS), ("short", 500)):
        streamhouse_broker.create_topic(topic, config={"retention.ms": str(retention)})
        streamhouse_broker.produce(topic, "sample", timestamp=1_500_000_000_000)

    streamhouse_broker.faults.pass_time(1000)
    assert (start_of(streamhouse_broker, "long"), start_of(streamhouse_broker, "short")) == (0, 1)
    streamhouse_broker.faults.pass_time(MINUTE_MS)
    assert start_of(streamhouse_broker, "long") == 1

    streamhouse_broker.produce("long", "sample", timestamp=1_500_000_000_000)
    streamhouse_broker.flush()
    streamhouse_broker.faults.pass_time(0)
    assert start_of(streamhouse_broker, "long") == 2


def test_the_time_of_the_broker_is_told_and_clients_stay_behind_it(streamhouse_broker: Broker) -> None:
    streamhouse_broker.faults.pass_time(2 * HOUR_MS)
    assert abs(streamhouse_broker.now_ms() - time.time() * 1000 - 2 * HOUR_MS) < MINUTE_MS
    stamped_by_broker = {"message.timestamp.type": "LogAppendTime"}
    producer = Producer({"bootstrap.servers": streamhouse_broker.bootstrap})
    for topic, config in (("theirs", {}), ("ours", stamped_by_broker)):
        streamhouse_broker.create_topic(topic, config={"retention.ms": str(HOUR_MS), **config})
        producer.produce(topic, b"new")
    assert producer.flush(30) == 0

    streamhouse_broker.faults.pass_time(10 * MINUTE_MS)

    assert (start_of(streamhouse_broker, "theirs"), start_of(streamhouse_broker, "ours")) == (1, 0)


@pytest.mark.parametrize("durability", ["wal", "object"])
def test_the_broker_goes_on_at_once_under_the_epoch_that_it_had(streamhouse_broker: Broker, durability: str) -> None:
    streamhouse_broker.create_topic("orders", config={"streamhouse.durability": durability})
    produce(streamhouse_broker, b"before")
    (leader,) = streamhouse_broker.node.engine.leadership.leaders.values()
    epoch = leader.epoch

    streamhouse_broker.faults.pass_time(DAY_MS)
    produce(streamhouse_broker, b"after")

    (leader,) = streamhouse_broker.node.engine.leadership.leaders.values()
    assert leader.epoch == epoch
    with Kafka(streamhouse_broker.bootstrap) as kafka:
        assert [record.value for record in kafka.read("orders")] == [b"before", b"after"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_that_did_not_beat_have_left_and_join_again(streamhouse_broker: Broker, protocol: str) -> None:
    streamhouse_broker.create_topic("orders")
    consumer = Consumer(
        {"bootstrap.servers": streamhouse_broker.bootstrap, "group.id": "readers", "group.protocol": protocol}
        | {"auto.offset.reset": "earliest"}
    )
    lost: list[object] = []
    consumer.subscribe(["orders"], on_lost=lambda _, partitions: lost.extend(partitions))
    eventually(lambda: consumer.poll(0.05) or consumer.assignment(), "the consumer has its partition")

    streamhouse_broker.faults.pass_time(HOUR_MS)
    eventually(lambda: consumer.poll(0.05) or lost, "it hears that it has lost its partition")
    eventually(lambda: consumer.poll(0.05) or consumer.assignment(), "and gets it again")
    consumer.close()


def test_a_session_longer_than_the_time_that_passed_goes_on(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders")
    consumer = Consumer(
        {"bootstrap.servers": streamhouse_broker.bootstrap, "group.id": "readers"}
        | {"session.timeout.ms": 1_700_000, "max.poll.interval.ms": 1_700_000}
    )
    consumer.subscribe(["orders"])
    eventually(lambda: consumer.poll(0.05) or consumer.assignment(), "the consumer has its partition")

    streamhouse_broker.faults.pass_time(10 * MINUTE_MS)

    (group,) = streamhouse_broker.node.broker.groups.all_groups()
    assert group.has_members
    consumer.close()


def test_offsets_of_a_group_that_nobody_is_in_are_forgotten_after_their_time(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders")
    produce(streamhouse_broker, b"value")
    consumer = Consumer({"bootstrap.servers": streamhouse_broker.bootstrap, "group.id": "readers"})
    consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)

    streamhouse_broker.faults.pass_time(6 * DAY_MS)
    assert consumer.committed([TopicPartition("orders", 0)])[0].offset == 1
    streamhouse_broker.faults.pass_time(2 * DAY_MS)
    assert consumer.committed([TopicPartition("orders", 0)])[0].offset < 0
    consumer.close()


def test_uploads_that_fail_do_not_hold_time_up(streamhouse_broker: Broker) -> None:
    streamhouse_broker.create_topic("orders", config={"retention.ms": str(HOUR_MS)})
    produce(streamhouse_broker, b"old")
    streamhouse_broker.faults.fail_puts(None)

    streamhouse_broker.faults.pass_time(2 * HOUR_MS)

    assert start_of(streamhouse_broker) == 0


@pytest.mark.parametrize("wrong", [-1, 1.5, "2h", True])
def test_time_does_not_go_back(streamhouse_broker: Broker, wrong: int) -> None:
    with pytest.raises(InvalidInput, match="not a time that can pass"):
        streamhouse_broker.faults.pass_time(wrong)
