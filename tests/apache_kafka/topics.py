"""Topics made, filled and read by confluent-kafka, as a second client beside Kafka's own programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

SECONDS = 60


def make_topic(bootstrap: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(SECONDS)


def grow_topic(bootstrap: str, name: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_partitions([NewPartitions(name, partitions)])[name].result(SECONDS)


def partition_count(bootstrap: str, name: str) -> int:
    return len(AdminClient({"bootstrap.servers": bootstrap}).list_topics(name, timeout=SECONDS).topics[name].partitions)


def produce(bootstrap: str, topic: str, values: Iterable[str], *, partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(SECONDS) == 0


def read(bootstrap: str, topic: str, partition: int = 0) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Key and value of every record that there is now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reading", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0)])
    try:
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, f"{topic}/{partition} does not come to an end"
            if message.error() is not None:
                return
            yield message.key(), message.value()
    finally:
        consumer.close()
