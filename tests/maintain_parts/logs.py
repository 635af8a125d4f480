"""Topics filled by a Kafka client, and the model that compaction is held against."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from compat.record import Record
from node.wait import HUNG_SECONDS, eventually
from services.seaweed import ACCESS_KEY_ID, SECRET_ACCESS_KEY
from spark_parts.nodes import SparkNode
from spark_parts.rows import Row
from streamhouse.objects.s3 import S3Options
from streamhouse.spark.options import Connection

FIRST_TIMESTAMP_MS = 1_700_000_000_000

SMALL_TAIL = ("--tail-bytes", "1KiB")
"""So that consumers read segments, and not what the node still has in memory."""


def create_topic(node: SparkNode, partitions: int = 1, **config: str) -> str:
    """`cleanup_policy="compact"` sets cleanup.policy."""
    name = f"maintained-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    made = admin.create_topics([NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)])
    made[name].result()
    return name


def configure(node: SparkNode, topic: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    change = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    admin.incremental_alter_configs([resource])[resource].result(HUNG_SECONDS)


def connection_to(node: SparkNode) -> Connection:
    return Connection(
        endpoint=node.endpoint,
        s3=S3Options(region="", access_key_id=ACCESS_KEY_ID, secret_access_key=SECRET_ACCESS_KEY),
    )


def keyed_records(count: int, *, keys: int, seed: int = 1) -> list[Record]:
    """Few keys with many values, every fifth a tombstone, some with headers, each with a timestamp of its own."""
    chance = random.Random(seed)
    return [
        Record(
            key=b"key-%d" % chance.randrange(keys),
            value=None if number % 5 == 0 else b"value-%d" % number + chance.randbytes(chance.randrange(60)),
            headers=(("number", b"%d" % number), ("none", None)) if number % 3 == 0 else (),
            timestamp_ms=FIRST_TIMESTAMP_MS + number,
        )
        for number in range(count)
    ]


def latest_values(rows: Sequence[Row]) -> dict[tuple[int, bytes | None], bytes]:
    """What a reader of the whole log knows at its end: by partition and key, without what is deleted."""
    known = {(row.partition, row.key): row.value for row in rows}
    return {place: value for place, value in known.items() if value is not None}


def watermarks(bootstrap: str, topic: str) -> list[tuple[int, int]]:
    """Of each partition the first offset and the next one, as a Kafka client is told them."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "watermarks"})
    try:
        partitions = consumer.list_topics(topic, timeout=HUNG_SECONDS).topics[topic].partitions
        found = [
            consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=HUNG_SECONDS)
            for partition in sorted(partitions)
        ]
    finally:
        consumer.close()
    assert None not in found, found
    return [each for each in found if each is not None]


class RunningProducer:
    """Writes to a topic, one record after the other, until it is told to stop; `rows` are those acknowledged."""

    def __init__(self, bootstrap: str, topic: str, *, keys: int) -> None:
        self.rows: list[Row] = []
        self._topic = topic
        self._keys = keys
        self._errors: list[str] = []
        self._stop = Event()
        self._producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "enable.idempotence": True})
        self._thread = Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(HUNG_SECONDS) == 0, "records were never acknowledged"
        assert not self._errors, self._errors

    def _run(self) -> None:
        number = 0
        while not self._stop.wait(0.002):
            self._send(number)
            self._producer.poll(0)
            number += 1

    def _send(self, number: int) -> None:
        key, value = b"key-%d" % (number % self._keys), b"running-%d" % number

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self._errors.append(error.str())
                return
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.rows.append(Row(self._topic, partition, offset, message.timestamp()[1], key, value, ()))

        self._producer.produce(self._topic, key=key, value=value, on_delivery=delivered)


@contextmanager
def running_producer(node: SparkNode, topic: str, *, keys: int) -> Iterator[RunningProducer]:
    """Has had an answer before anything else happens."""
    producer = RunningProducer(node.bootstrap, topic, keys=keys)
    producer.start()
    try:
        eventually(lambda: producer.rows, "the first acknowledged record")
        yield producer
    finally:
        producer.stop()
