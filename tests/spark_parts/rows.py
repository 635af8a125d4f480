"""Records as rows: written by a Kafka client with every codec, read back by it and by Spark, to be compared."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from compat.record import CODECS, Record, empty_records, sample_records
from node.wait import HUNG_SECONDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    """Sorts by where it is. A record without headers has none, whatever the reader calls that."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


def varied_records(count: int, seed: int = 1) -> list[Record]:
    """Every odd shape that there is, then ordinary ones of up to 2 KiB, a tenth of them tombstones."""
    chance = random.Random(seed)
    records = [*sample_records(), *empty_records()][:count]
    while len(records) < count:
        number = len(records)
        headers = (("number", str(number).encode()),) if number % 7 == 0 else ()
        value = None if number % 10 == 0 else chance.randbytes(chance.randrange(1, 64)) * chance.randrange(1, 32)
        key = f"key-{chance.randrange(max(1, count // 4))}".encode()
        records.append(Record(key=key, value=value, headers=headers, timestamp_ms=1_700_000_000_000 + number * 1_000))
    return records


def produce(
    bootstrap: str, topic: str, records: Sequence[Record], *, codec: str = "none", partition: int | None = None
) -> None:
    """Returns when all are acknowledged. Without a partition, Kafka's usual one for the key."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 5, "partitioner": "murmur2_random"}
    )
    errors: list[str] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            errors.append(error.str())

    place = {} if partition is None else {"partition": partition}
    for record in records:
        producer.produce(
            topic,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
            timestamp=record.timestamp_ms or 0,
            on_delivery=delivered,
            **place,
        )
        producer.poll(0)
    assert producer.flush(HUNG_SECONDS) == 0, "records were never acknowledged"
    assert not errors, errors


def produce_with_every_codec(bootstrap: str, topic: str, records: Sequence[Record], *, run_records: int = 50) -> None:
    """In turns of so many records: batches of all codecs lie beside one another."""
    for start, codec in zip(range(0, len(records), run_records), cycle(CODECS)):
        produce(bootstrap, topic, records[start : start + run_records], codec=codec)


def consume(bootstrap: str, topic: str) -> list[Row]:
    """All that is below the high watermarks now, as a Kafka client reads it, in order of partition and offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "rows",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=HUNG_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in partitions])
        rows: list[Row] = []
        unfinished = set(partitions)
        while unfinished:
            message = consumer.poll(HUNG_SECONDS)
            assert message is not None, f"{topic} stopped after {len(rows)} records"
            error = message.error()
            if error is None:
                rows.append(_from_message(message))
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                unfinished.discard(message.partition())
        return sorted(rows)
    finally:
        consumer.close()


def _from_message(message: Message) -> Row:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers: Iterable[tuple[str, bytes | None]] = message.headers() or ()
    return Row(topic, partition, offset, message.timestamp()[1], message.key(), message.value(), tuple(headers))


def rows_of(frame: DataFrame) -> list[Row]:
    """What Spark read, in order of topic, partition and offset. Without the column headers, no row has any."""
    return sorted(
        Row(
            record["topic"],
            record["partition"],
            record["offset"],
            # Whole milliseconds: nothing is lost in the division.
            round(record["timestamp"].timestamp() * 1000),
            record["key"],
            record["value"],
            tuple((header["key"], header["value"]) for header in record.get("headers") or ()),
        )
        for record in frame.toArrow().to_pylist()
    )
