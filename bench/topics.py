"""Topics of a server under measurement: created, and asked for their ends, with confluent-kafka."""

from __future__ import annotations

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from bench.servers import ServerFailed

PATIENCE_SECONDS = 60
CRITICAL = 2
"""The log level below which librdkafka keeps quiet."""


def create_topic(address: str, topic: str, partitions: int, config: dict[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": CRITICAL})
    new = NewTopic(topic, partitions, 1, config=config or {})
    created = admin.create_topics([new], operation_timeout=PATIENCE_SECONDS)
    try:
        created[topic].result(PATIENCE_SECONDS)
    except (KafkaException, TimeoutError) as refused:
        raise ServerFailed(f"{address} did not create {topic}: {refused!r}") from None


def end_offsets(address: str, topic: str, partitions: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "bench", "log_level": CRITICAL})
    try:
        asked = [TopicPartition(topic, partition) for partition in range(partitions)]
        return [consumer.get_watermark_offsets(one, timeout=PATIENCE_SECONDS)[1] for one in asked]
    except KafkaException as refused:
        raise ServerFailed(f"{address} did not say where {topic} ends: {refused!r}") from None
    finally:
        consumer.close()
