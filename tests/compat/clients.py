"""Four Kafka clients behind one pair of calls, each used the way its own users do."""

from __future__ import annotations

import asyncio
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import aiokafka
import confluent_kafka
import kafka

from compat.record import Record
from node.wait import HUNG_SECONDS

HUNG_MS = int(HUNG_SECONDS * 1000)


class Client(Protocol):
    name: str
    sets_timestamps: bool
    sends_null_headers: bool

    def produce(self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], codec: str) -> None:
        """Send all and return when all are acknowledged by all replicas."""

    def consume(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Record]:
        """The first `count` records of the partition."""


class Confluent:
    """librdkafka, which most languages' clients are made of."""

    name = "confluent-kafka"
    sets_timestamps = True
    sends_null_headers = True

    def produce(self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], codec: str) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "compression.type": codec, "acks": "all", "linger.ms": 20}
        )
        errors: list[str] = []

        def delivered(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
            if error is not None:
                errors.append(error.str())

        for record in records:
            producer.produce(
                topic,
                partition=partition,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp=record.timestamp_ms,
                on_delivery=delivered,
            )
        assert producer.flush(HUNG_SECONDS) == 0, "records were never acknowledged"
        assert not errors, errors

    def consume(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Record]:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "reader"})
        try:
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)])
            records: list[Record] = []
            while len(records) < count:
                message = consumer.poll(HUNG_SECONDS)
                assert message is not None, f"only {len(records)} of {count} came"
                assert message.error() is None, message.error()
                records.append(self._record(message))
            return records
        finally:
            consumer.close()

    def _record(self, message: confluent_kafka.Message) -> Record:
        return Record(
            key=message.key(),
            value=message.value(),
            headers=tuple(message.headers() or ()),
            timestamp_ms=message.timestamp()[1],
        )


class AioKafka:
    name = "aiokafka"
    sets_timestamps = True
    sends_null_headers = True

    def produce(self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], codec: str) -> None:
        async def send() -> None:
            producer = aiokafka.AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                compression_type=None if codec == "none" else codec,
                acks="all",
                linger_ms=20,
            )
            async with producer:
                pending = [
                    await producer.send(
                        topic,
                        partition=partition,
                        key=record.key,
                        value=record.value,
                        headers=list(record.headers),
                        timestamp_ms=record.timestamp_ms,
                    )
                    for record in records
                ]
                await asyncio.wait_for(asyncio.gather(*pending), HUNG_SECONDS)

        asyncio.run(send())

    def consume(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Record]:
        async def receive() -> list[Record]:
            consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
            async with consumer:
                consumer.assign([aiokafka.TopicPartition(topic, partition)])
                return [self._record(await asyncio.wait_for(consumer.getone(), HUNG_SECONDS)) for _ in range(count)]

        return asyncio.run(receive())

    def _record(self, message: aiokafka.ConsumerRecord) -> Record:
        return Record(
            key=message.key, value=message.value, headers=tuple(message.headers), timestamp_ms=message.timestamp
        )


class KafkaPython:
    name = "kafka-python"
    sets_timestamps = True
    sends_null_headers = False

    def produce(self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], codec: str) -> None:
        producer = kafka.KafkaProducer(
            bootstrap_servers=bootstrap,
            compression_type=None if codec == "none" else codec,
            acks="all",
            linger_ms=20,
        )
        try:
            pending = [
                producer.send(
                    topic,
                    partition=partition,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    timestamp_ms=record.timestamp_ms,
                )
                for record in records
            ]
            for future in pending:
                future.get(timeout=HUNG_SECONDS)
        finally:
            producer.close()

    def consume(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Record]:
        consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", group_id=None)
        try:
            consumer.assign([kafka.TopicPartition(topic, partition)])
            records: list[Record] = []
            while len(records) < count:
                batches = consumer.poll(timeout_ms=HUNG_MS)
                assert batches, f"only {len(records)} of {count} came"
                records.extend(self._record(message) for batch in batches.values() for message in batch)
            return records[:count]
        finally:
            consumer.close()

    def _record(self, message: kafka.consumer.fetcher.ConsumerRecord) -> Record:
        return Record(
            key=message.key, value=message.value, headers=tuple(message.headers), timestamp_ms=message.timestamp
        )


class Kcat:
    """The command line client. It cannot choose timestamps, and prints NULL for a header without a value."""

    name = "kcat"
    sets_timestamps = False
    sends_null_headers = True
    _FORMAT = "%T %K %S %h\\n%k%s\\n"

    def produce(self, bootstrap: str, topic: str, partition: int, records: Sequence[Record], codec: str) -> None:
        """One process per record: headers are arguments, the value is a file; only a line on stdin can be null."""
        for record in records:
            headers = [part for name, value in record.headers for part in ("-H", _header_argument(name, value))]
            target = ["-P", "-b", bootstrap, "-t", topic, "-p", str(partition), "-z", codec, "-X", "acks=all", *headers]
            if record.value is None:
                _kcat(*target, "-Z", "-K", "|", stdin=(record.key or b"") + b"|\n")
                continue
            key = [] if record.key is None else ["-k", record.key]
            with tempfile.NamedTemporaryFile() as payload:
                payload.write(record.value)
                payload.flush()
                _kcat(*target, *key, payload.name)

    def produce_files(self, bootstrap: str, topic: str, partition: int, files: Sequence[Path], codec: str) -> None:
        """Each file as one record."""
        _kcat("-P", "-b", bootstrap, "-t", topic, "-p", str(partition), "-z", codec, "-X", "acks=all",
              *(str(file) for file in files))  # fmt: skip

    def consume(self, bootstrap: str, topic: str, partition: int, count: int) -> list[Record]:
        output = _kcat("-C", "-b", bootstrap, "-t", topic, "-p", str(partition), "-o", "beginning", "-q",
                       "-c", str(count), "-f", self._FORMAT)  # fmt: skip
        records: list[Record] = []
        while output:
            line, _, output = output.partition(b"\n")
            timestamp, key_size, value_size, headers = line.split(b" ", 3)
            key, output = _take(output, int(key_size))
            value, output = _take(output, int(value_size))
            assert output[:1] == b"\n", "kcat printed something else than its format says"
            output = output[1:]
            records.append(Record(key=key, value=value, headers=_parse_headers(headers), timestamp_ms=int(timestamp)))
        return records


def _kcat(*arguments: str | bytes, stdin: bytes = b"") -> bytes:
    finished = subprocess.run(["kcat", *arguments], input=stdin, capture_output=True, timeout=HUNG_SECONDS, check=False)
    assert finished.returncode == 0, finished.stderr.decode(errors="replace")
    return finished.stdout


def _header_argument(name: str, value: bytes | None) -> bytes:
    return name.encode() if value is None else name.encode() + b"=" + value


def _take(output: bytes, size: int) -> tuple[bytes | None, bytes]:
    """kcat prints the size of a null as -1, and nothing for it."""
    return (None, output) if size < 0 else (output[:size], output[size:])


def _parse_headers(printed: bytes) -> tuple[tuple[str, bytes | None], ...]:
    if not printed:
        return ()
    pairs = (part.partition(b"=") for part in printed.split(b","))
    return tuple((name.decode(), None if value == b"NULL" else value) for name, _, value in pairs)


CLIENTS: dict[str, Client] = {client.name: client for client in (Confluent(), AioKafka(), KafkaPython(), Kcat())}
