"""What one client sends, every client reads back: same key, value, headers and timestamp, with every codec."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

from compat.clients import CLIENTS, Kcat
from compat.conftest import Broker, NewTopicName
from compat.record import (
    CODECS,
    Record,
    empty_records,
    random_records,
    sample_records,
    without_null_headers,
    without_timestamps,
)

TEN_MEGABYTES = 10 * 2**20
PROGRAMMED = [name for name in CLIENTS if name != Kcat.name]

Sent = Callable[[str, str], str]


@pytest.fixture(scope="module")
def sent(broker: Broker, new_topic: NewTopicName) -> Sent:
    """The topic to which a client sent the samples with a codec; it sends them once."""
    topics: dict[tuple[str, str], str] = {}

    def send(client: str, codec: str) -> str:
        if (client, codec) not in topics:
            topics[client, codec] = new_topic()
            CLIENTS[client].produce(broker.bootstrap, topics[client, codec], 0, samples_of(client), codec)
        return topics[client, codec]

    return send


@pytest.mark.parametrize("consumer", CLIENTS)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("producer", CLIENTS)
def test_every_client_reads_what_every_client_sent(
    broker: Broker, sent: Sent, producer: str, codec: str, consumer: str
) -> None:
    expected = samples_of(producer)
    received = CLIENTS[consumer].consume(broker.bootstrap, sent(producer, codec), 0, len(expected))
    if not CLIENTS[producer].sets_timestamps:
        received, expected = without_timestamps(received), without_timestamps(expected)
    assert received == expected


@pytest.mark.parametrize("consumer", CLIENTS)
@pytest.mark.parametrize("producer", PROGRAMMED)
def test_empty_is_told_from_null(broker: Broker, new_topic: NewTopicName, producer: str, consumer: str) -> None:
    topic = new_topic()
    expected = empty_records()
    if consumer == Kcat.name:
        expected = expected[:-1]  # kcat prints headers as text that ends at a NUL
    CLIENTS[producer].produce(broker.bootstrap, topic, 0, expected, "none")
    assert CLIENTS[consumer].consume(broker.bootstrap, topic, 0, len(expected)) == expected


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("client", PROGRAMMED)
def test_ten_megabytes_of_random_sizes_come_back_exactly(
    broker: Broker, new_topic: NewTopicName, client: str, codec: str
) -> None:
    topic = new_topic()
    records = random_records(TEN_MEGABYTES, seed=len(client))
    CLIENTS[client].produce(broker.bootstrap, topic, 0, records, codec)
    received = CLIENTS[client].consume(broker.bootstrap, topic, 0, len(records))
    assert digests(received) == digests(records)


def test_kcat_sends_ten_megabytes_of_files_that_come_back_exactly(
    broker: Broker, new_topic: NewTopicName, tmp_path: Path
) -> None:
    topic = new_topic()
    records = random_records(TEN_MEGABYTES, seed=4)
    files = []
    for number, record in enumerate(records):
        file = tmp_path / str(number)
        file.write_bytes(record.value or b"")
        files.append(file)
    kcat = Kcat()
    kcat.produce_files(broker.bootstrap, topic, 0, files, "lz4")
    received = kcat.consume(broker.bootstrap, topic, 0, len(records))
    assert [record.value for record in received] == [record.value for record in records]


def test_partitions_keep_to_themselves(broker: Broker, new_topic: NewTopicName) -> None:
    topic = new_topic(partitions=8)
    client = CLIENTS["confluent-kafka"]
    for partition in range(8):
        records = [Record(key=b"k", value=f"{partition}-{number}".encode(), timestamp_ms=1) for number in range(5)]
        client.produce(broker.bootstrap, topic, partition, records, "none")
    for partition in range(8):
        received = client.consume(broker.bootstrap, topic, partition, 5)
        assert [record.value for record in received] == [f"{partition}-{number}".encode() for number in range(5)]


def samples_of(client: str) -> list[Record]:
    records = sample_records()
    return records if CLIENTS[client].sends_null_headers else without_null_headers(records)


def digests(records: list[Record]) -> list[tuple[bytes | None, int | None, str]]:
    """Short enough to be shown when they differ."""
    return [
        (record.key, record.timestamp_ms, hashlib.sha256(record.value or b"").hexdigest()[:16]) for record in records
    ]
