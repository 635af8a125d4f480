"""Positions: assign, seek, commit, and what a consumer is told when it asks for what is not there."""

from __future__ import annotations

import asyncio

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from compat.clients import HUNG_MS
from compat.conftest import Broker, NewTopicName, unused_name
from node.raw import RawConnection, build_batch
from node.wait import HUNG_SECONDS

START_MS = 1_700_000_000_000


@pytest.fixture
def filled(raw: RawConnection, new_topic: NewTopicName) -> str:
    """A topic with ten records in batches of two, a second apart."""
    topic = new_topic()
    for number in range(0, 10, 2):
        values = (f"{number}".encode(), f"{number + 1}".encode())
        batch = build_batch(*values, timestamp=START_MS + number * 1000)
        assert raw.produce(topic, batch).error_code == 0
    return topic


def consumer_of(broker: Broker, group: str, **config: object) -> confluent_kafka.Consumer:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "enable.auto.commit": False, **config}
    return confluent_kafka.Consumer(settings)


def next_value(consumer: confluent_kafka.Consumer) -> bytes | None:
    message = consumer.poll(HUNG_SECONDS)
    assert message is not None, "nothing came"
    assert message.error() is None, message.error()
    return message.value()


@pytest.mark.parametrize("position", ["assign", "seek", "committed"])
def test_an_offset_with_kafkas_first_epoch_is_where_confluent_begins(
    broker: Broker, filled: str, position: str
) -> None:
    """Clients check the epoch of a position before they fetch, and start over where the log seems to have been cut."""
    consumer = consumer_of(broker, unused_name(), **{"auto.offset.reset": "earliest"})
    place = TopicPartition(filled, 0, 6, leader_epoch=0)
    if position == "assign":
        consumer.assign([place])
    elif position == "seek":
        consumer.assign([TopicPartition(filled, 0, 2)])
        assert next_value(consumer) == b"2"
        consumer.seek(place)
    else:
        consumer.commit(offsets=[place], asynchronous=False)
        consumer.assign([TopicPartition(filled, 0, confluent_kafka.OFFSET_STORED)])
    assert [next_value(consumer) for _ in range(4)] == [b"6", b"7", b"8", b"9"]
    consumer.close()


def test_confluent_goes_on_where_it_committed(broker: Broker, filled: str) -> None:
    group = unused_name()
    first = consumer_of(broker, group)
    first.assign([TopicPartition(filled, 0, 3)])
    assert next_value(first) == b"3"
    assert next_value(first) == b"4"
    first.commit(asynchronous=False)
    first.close()
    second = consumer_of(broker, group)
    (committed,) = second.committed([TopicPartition(filled, 0)], HUNG_SECONDS)
    assert committed.offset == 5
    second.assign([TopicPartition(filled, 0, confluent_kafka.OFFSET_STORED)])
    assert next_value(second) == b"5"
    second.close()


def test_confluent_gets_back_what_it_noted_with_an_offset(broker: Broker, filled: str) -> None:
    """librdkafka's binding sends the NUL that ends a C string as a part of it."""
    consumer = consumer_of(broker, unused_name())
    consumer.commit(offsets=[TopicPartition(filled, 0, 4, metadata="half way")], asynchronous=False)
    (committed,) = consumer.committed([TopicPartition(filled, 0)], HUNG_SECONDS)
    consumer.close()
    assert (committed.offset, committed.metadata) == (4, "half way")


def test_kafka_python_goes_on_where_it_committed(broker: Broker, filled: str) -> None:
    group = unused_name()
    target = kafka.TopicPartition(filled, 0)
    first = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False)
    first.assign([target])
    assert first.committed(target) is None
    first.commit({target: kafka.structs.OffsetAndMetadata(6, "half way", -1)})
    first.close()
    second = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=group, enable_auto_commit=False)
    second.assign([target])
    assert second.committed(target) == 6
    assert second.committed(target, metadata=True).metadata == "half way"
    batches = second.poll(timeout_ms=HUNG_MS)
    assert batches[target][0].value == b"6"
    second.close()


def test_aiokafka_goes_on_where_it_committed(broker: Broker, filled: str) -> None:
    group = unused_name()
    target = aiokafka.TopicPartition(filled, 0)

    async def use() -> bytes | None:
        settings = {"bootstrap_servers": broker.bootstrap, "group_id": group, "enable_auto_commit": False}
        async with aiokafka.AIOKafkaConsumer(**settings) as first:
            first.assign([target])
            await first.commit({target: 7})
        async with aiokafka.AIOKafkaConsumer(**settings) as second:
            second.assign([target])
            assert await second.committed(target) == 7
            message = await asyncio.wait_for(second.getone(), HUNG_SECONDS)
            return message.value

    assert asyncio.run(use()) == b"7"


def test_groups_do_not_see_each_others_offsets(broker: Broker, filled: str) -> None:
    one, other = consumer_of(broker, unused_name()), consumer_of(broker, unused_name())
    one.commit(offsets=[TopicPartition(filled, 0, 4)], asynchronous=False)
    (committed,) = other.committed([TopicPartition(filled, 0)], HUNG_SECONDS)
    assert committed.offset == confluent_kafka.OFFSET_INVALID
    one.close()
    other.close()


def test_the_admin_lists_a_groups_offsets(broker: Broker, admin: AdminClient, filled: str) -> None:
    group = unused_name()
    consumer = consumer_of(broker, group)
    consumer.commit(offsets=[TopicPartition(filled, 0, 4)], asynchronous=False)
    consumer.close()
    request = confluent_kafka.ConsumerGroupTopicPartitions(group)
    answer = admin.list_consumer_group_offsets([request])[group].result(HUNG_SECONDS)
    assert [(listed.topic, listed.partition, listed.offset) for listed in answer.topic_partitions] == [(filled, 0, 4)]


def test_confluent_seeks_by_time(broker: Broker, filled: str) -> None:
    consumer = consumer_of(broker, unused_name())
    (found,) = consumer.offsets_for_times([TopicPartition(filled, 0, START_MS + 3500)], HUNG_SECONDS)
    assert found.offset == 4
    consumer.assign([found])
    assert next_value(consumer) == b"4"
    (beyond,) = consumer.offsets_for_times([TopicPartition(filled, 0, START_MS + 99_000)], HUNG_SECONDS)
    assert beyond.offset == confluent_kafka.OFFSET_END
    consumer.close()


def test_kafka_python_seeks_by_time_and_place(broker: Broker, filled: str) -> None:
    target = kafka.TopicPartition(filled, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None)
    consumer.assign([target])
    found = consumer.offsets_for_times({target: START_MS + 2001})[target]
    assert (found.offset, found.timestamp) == (3, START_MS + 2001)
    assert consumer.beginning_offsets([target]) == {target: 0}
    assert consumer.end_offsets([target]) == {target: 10}
    consumer.seek(target, 9)
    assert [record.value for record in consumer.poll(timeout_ms=HUNG_MS)[target]] == [b"9"]
    consumer.seek_to_beginning(target)
    assert consumer.poll(timeout_ms=HUNG_MS)[target][0].value == b"0"
    consumer.close()


def test_aiokafka_seeks_by_time(broker: Broker, filled: str) -> None:
    target = aiokafka.TopicPartition(filled, 0)

    async def use() -> None:
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
            consumer.assign([target])
            found = await consumer.offsets_for_times({target: START_MS + 8000})
            assert found[target].offset == 8
            consumer.seek(target, 8)
            assert (await asyncio.wait_for(consumer.getone(), HUNG_SECONDS)).value == b"8"

    asyncio.run(use())


@pytest.mark.parametrize(("reset", "expected"), [("earliest", b"0"), ("latest", None)])
def test_a_consumer_out_of_range_is_reset(broker: Broker, filled: str, reset: str, expected: bytes | None) -> None:
    consumer = consumer_of(broker, unused_name(), **{"auto.offset.reset": reset, "enable.partition.eof": True})
    consumer.assign([TopicPartition(filled, 0, 1000)])
    message = consumer.poll(HUNG_SECONDS)
    assert message is not None
    if expected is None:
        assert message.error().code() == KafkaError._PARTITION_EOF
        assert message.offset() == 10
    else:
        assert message.value() == expected
    consumer.close()


def test_a_consumer_out_of_range_without_a_reset_is_told(broker: Broker, filled: str) -> None:
    consumer = consumer_of(broker, unused_name(), **{"auto.offset.reset": "error"})
    consumer.assign([TopicPartition(filled, 0, 1000)])
    message = consumer.poll(HUNG_SECONDS)
    assert message is not None
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    consumer.close()


def test_watermarks_are_told(broker: Broker, filled: str) -> None:
    consumer = consumer_of(broker, unused_name())
    assert consumer.get_watermark_offsets(TopicPartition(filled, 0), HUNG_SECONDS) == (0, 10)
    consumer.close()


def test_a_waiting_consumer_gets_a_record_as_it_comes(
    broker: Broker, raw: RawConnection, new_topic: NewTopicName
) -> None:
    topic = new_topic()
    consumer = consumer_of(broker, unused_name(), **{"fetch.wait.max.ms": 30_000, "socket.timeout.ms": 60_000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert consumer.poll(0.5) is None
    raw.produce(topic, build_batch(b"at last"))
    assert next_value(consumer) == b"at last"
    consumer.close()
