"""A producer that makes its batches wrong is told so for good; only what may have been damaged on its way is to be sent
again. The codes are Kafka's."""

from __future__ import annotations

import pytest

from format_samples.batches import batch
from log_parts.batches import real
from log_parts.kafka import Kafka
from streamhouse.format.compression import Codec
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import produce

ONE = bytes(real(b"one"))
ZSTD = bytes(real(b"zstd", codec=Codec.ZSTD))
VERSIONS = [3, 9]


def produce_to(kafka: Kafka, topic: str, *batches: bytes | None, version: int) -> list[int]:
    """The codes of the partitions, each of which gets one of the batches."""
    data = [produce.PartitionProduceData(index=index, records=records) for index, records in enumerate(batches)]
    request = produce.ProduceRequest(acks=-1, topic_data=[produce.TopicProduceData(name=topic, partition_data=data)])
    answers = kafka.call(produce, request, version).responses[0].partition_responses
    return [int(answer.error_code) for answer in answers]


def damaged(whole: bytes) -> bytes:
    return whole[:-1] + bytes([whole[-1] ^ 1])


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(None, id="null"),
        pytest.param(b"", id="empty"),
        pytest.param(ONE + ONE, id="two"),
        pytest.param(batch(magic=0), id="v0"),
        pytest.param(batch(magic=1)[:40], id="a small v1"),
        pytest.param(batch(count=0), id="no records"),
    ],
)
def test_what_was_made_wrong_is_refused_for_good(kafka: Kafka, topic: str, wrong: bytes | None, version: int) -> None:
    assert produce_to(kafka, topic, wrong, version=version) == [ErrorCode.INVALID_RECORD]
    assert produce_to(kafka, topic, wrong, ONE, version=version) == [ErrorCode.INVALID_RECORD, ErrorCode.NONE]
    assert kafka.read(topic) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(ONE[:-1], id="cut"),
        pytest.param(ONE[:30], id="cut in the header"),
        pytest.param(ONE + ONE[:-1], id="cut in a second"),
        pytest.param(damaged(ONE), id="crc"),
        pytest.param(damaged(ZSTD), id="crc of zstd"),
        pytest.param(batch(magic=5), id="magic"),
    ],
)
def test_what_may_have_been_damaged_on_its_way_may_be_sent_again(
    kafka: Kafka, topic: str, wrong: bytes, version: int
) -> None:
    assert produce_to(kafka, topic, wrong, version=version) == [ErrorCode.CORRUPT_MESSAGE]
    assert kafka.read(topic) == []


@pytest.mark.parametrize("version", range(produce.MIN_VERSION, 13))
def test_zstd_is_taken_since_the_version_that_has_it(kafka: Kafka, topic: str, version: int) -> None:
    code = ErrorCode.NONE if version >= 7 else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce_to(kafka, topic, ZSTD, version=version) == [code]
    assert produce_to(kafka, topic, ONE, ZSTD, version=version) == [ErrorCode.NONE, code]
    assert produce_to(kafka, topic, bytes(real(b"lz4", codec=Codec.LZ4)), version=version) == [ErrorCode.NONE]


def test_zstd_that_its_topic_wants_otherwise_is_too_early_all_the_same(broker: Broker, kafka: Kafka) -> None:
    broker.create_topic("as-lz4", config={"compression.type": "lz4"})

    assert produce_to(kafka, "as-lz4", ZSTD, version=6) == [ErrorCode.UNSUPPORTED_COMPRESSION_TYPE]
    assert produce_to(kafka, "as-lz4", ZSTD, version=7) == [ErrorCode.NONE]


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_without_batches_may_be_few(kafka: Kafka, topic: str, version: int) -> None:
    """A hundred thousand of them fit into a megabyte, and each has an answer."""
    assert len(produce_to(kafka, topic, *[None] * 100, version=version)) == 100

    with pytest.raises(ConnectionError):
        produce_to(kafka, topic, *[None] * 2_000, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_partitions_with_batches_may_be_many(version: int) -> None:
    with Broker(default_partitions=3_000) as broker, Kafka(broker.bootstrap) as kafka:
        broker.create_topic("wide", 3_000)
        assert produce_to(kafka, "wide", *[ONE] * 3_000, version=version) == [ErrorCode.NONE] * 3_000
