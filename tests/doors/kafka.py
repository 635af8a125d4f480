"""Kafka's door, through librdkafka."""

from __future__ import annotations

import confluent_kafka

from doors.record import Sample, Shown
from node.process import Node
from node.wait import HUNG_SECONDS


def write(node: Node, topic: str, samples: tuple[Sample, ...]) -> list[int]:
    offsets: list[int] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "acks": "all"})

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        offsets.append(message.offset())

    for sample in samples:
        given = {} if sample.timestamp_ms is None else {"timestamp": sample.timestamp_ms}
        producer.produce(
            topic, sample.value, sample.key, 0, headers=list(sample.headers), on_delivery=delivered, **given
        )
    assert producer.flush(HUNG_SECONDS) == 0
    return offsets


def read(node: Node, topic: str, count: int) -> list[Shown]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": node.bootstrap, "group.id": "matrix"})
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        messages = consumer.consume(count, HUNG_SECONDS)
    finally:
        consumer.close()
    assert len(messages) == count, f"only {len(messages)} of {count} came"
    return [
        Shown(
            offset=message.offset(),
            key=message.key(),
            value=message.value(),
            headers=tuple(message.headers() or ()),
            timestamp_ms=message.timestamp()[1],
        )
        for message in messages
    ]


def partitions_of(node: Node, topic: str, keys: list[bytes]) -> list[int]:
    """As Kafka's own clients choose them; librdkafka's default differs, and has this as an option."""
    partitions: dict[bytes, int] = {}
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "partitioner": "murmur2_random"})

    def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
        partitions[message.key()] = message.partition()

    for key in keys:
        producer.produce(topic, b"", key, on_delivery=delivered)
    assert producer.flush(HUNG_SECONDS) == 0
    return [partitions[key] for key in keys]
