"""A producer that writes a wrong largest timestamp into its batches does not lose them to retention."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from log_parts.batches import real
from log_parts.kafka import Kafka
from node.wait import eventually
from streamhouse.format.batch import HEADER_BYTES, check_produced, stamp_max_timestamp
from streamhouse.format.compression import Codec
from streamhouse.runtime.clock import SystemClock
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import produce

LONG_AGO_MS = 1_000
EARLIEST, LARGEST_TIMESTAMP = -2, -3


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Retention never rests."""
    with Broker(retention_interval=20) as broker:
        yield broker


def of_old_sarama(batch: memoryview) -> bytes:
    return stamp_max_timestamp(batch, -1)


def produce_with_another(kafka: Kafka, topic: str, batch: bytes) -> int:
    """In a request with a batch for another partition too, which is not read in the fast way."""
    data = [
        produce.PartitionProduceData(index=0, records=batch),
        produce.PartitionProduceData(index=1, records=bytes(real(b"other"))),
    ]
    request = produce.ProduceRequest(acks=-1, topic_data=[produce.TopicProduceData(name=topic, partition_data=data)])
    return int(kafka.call(produce, request, 9).responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("alone", [True, False])
def test_records_without_a_largest_timestamp_are_as_young_as_they_are(
    broker: Broker, kafka: Kafka, topic: str, codec: Codec, alone: bool
) -> None:
    now_ms = SystemClock().now_ms()
    honest = real(b"a", b"b", b"c", timestamps=(now_ms, now_ms + 7, now_ms + 2), codec=codec)
    understated = of_old_sarama(honest)
    kafka.produce(topic, real(b"old", timestamps=(LONG_AGO_MS,)))
    broker.flush()

    code = kafka.produce(topic, understated).error_code if alone else produce_with_another(kafka, topic, understated)
    broker.flush()

    assert code == ErrorCode.NONE
    eventually(lambda: kafka.offset_of(topic, EARLIEST).offset >= 1, "a pass of retention")
    assert kafka.offset_of(topic, EARLIEST).offset == 1
    assert [record.value for record in kafka.read(topic, offset=1)] == [b"a", b"b", b"c"]
    found = kafka.offset_of(topic, now_ms + 3)
    assert (found.offset, found.timestamp) == (2, now_ms + 7)
    assert kafka.offset_of(topic, LARGEST_TIMESTAMP).offset == 2


def test_the_header_is_repaired_and_the_records_are_as_they_were_sent(kafka: Kafka, topic: str) -> None:
    now_ms = SystemClock().now_ms()
    understated = of_old_sarama(real(b"a", b"b", timestamps=(now_ms, now_ms + 1), codec=Codec.GZIP))

    kafka.produce(topic, understated)

    stored = bytes(kafka.fetch(topic, 0).records)
    assert stored[HEADER_BYTES:] == understated[HEADER_BYTES:]
    assert check_produced(memoryview(stored)).max_timestamp_ms == now_ms + 1


def test_a_repeat_of_a_repaired_batch_is_not_stored_again(kafka: Kafka, topic: str) -> None:
    now_ms = SystemClock().now_ms()
    understated = of_old_sarama(real(b"once", timestamps=(now_ms,), producer=(7, 0, 0)))

    offsets = [kafka.produce(topic, understated).base_offset for _ in range(2)]

    assert offsets == [0, 0]
    assert [record.value for record in kafka.read(topic)] == [b"once"]


def test_records_that_cannot_be_read_are_refused_where_they_must_be_read(kafka: Kafka, topic: str) -> None:
    unreadable = bytearray(real(b"a", timestamps=(LONG_AGO_MS,)))
    unreadable[HEADER_BYTES] ^= 0x7E

    assert kafka.produce(topic, of_old_sarama(memoryview(unreadable))).error_code == ErrorCode.INVALID_RECORD


def test_a_topic_with_append_times_takes_them_instead(broker: Broker, kafka: Kafka, topic: str) -> None:
    name = f"{topic}-stamped"
    broker.create_topic(name, config={"message.timestamp.type": "LogAppendTime"})
    before_ms = SystemClock().now_ms()

    answer = kafka.produce(name, of_old_sarama(real(b"a", timestamps=(LONG_AGO_MS,))))

    (stored,) = kafka.read(name)
    assert stored.timestamp_ms == answer.log_append_time_ms >= before_ms
