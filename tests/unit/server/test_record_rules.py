"""Records that a topic does not take are refused at every door, with the batch that they are in; what comes behind a
batch that is looked at does not overtake it; and topics without rules pay nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from uuid import uuid4

import confluent_kafka
import pytest

from flume_parts import raw
from flume_parts.raw import NONE, UNKNOWN, RawFlume
from format_samples.hostile import inflating, lying
from grpc_parts.calls import Api, api_of
from log_parts.kafka import Kafka, produce_request
from node.wait import HUNG_SECONDS
from rest_parts.caller import RestCaller
from streamhouse.broker import admission
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.producer import Producer
from streamhouse.format.batch import stamp_max_timestamp
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records
from streamhouse.model.errors import InvalidRecords
from streamhouse.runtime.clock import SystemClock
from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import produce

PRODUCER = 4_711
LARGE_BYTES = 40_000
"""More than is looked at in the read callback."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(http=True, grpc=True, flume=True) as broker:
        yield broker


@pytest.fixture
def compacted(broker: Broker) -> str:
    return made(broker, {"cleanup.policy": "compact"})


@pytest.fixture
def api(broker: Broker, event_loop_runner: asyncio.Runner) -> Iterator[Api]:
    yield from api_of(broker, event_loop_runner)


def made(broker: Broker, config: dict[str, str], partitions: int = 2) -> str:
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, partitions=partitions, config=config)
    return name


def configure(broker: Broker, topic: str, config: dict[str, str]) -> None:
    async def alter() -> None:
        async with Cluster.connect(broker.bootstrap) as cluster:
            await Admin(cluster).alter_topic(topic, set_configs=config)

    asyncio.run(alter())


def keyed(
    *keys: bytes | None,
    codec: Codec = Codec.NONE,
    size: int = 1,
    times_ms: tuple[int, ...] = (),
    sequence: int = -1,
) -> bytes:
    times = times_ms or (1_000,) * len(keys)
    return encode_records(
        [Record(0, time_ms, key, b"v" * size) for key, time_ms in zip(keys, times, strict=True)],
        codec=codec,
        producer_id=PRODUCER if sequence >= 0 else -1,
        producer_epoch=0 if sequence >= 0 else -1,
        base_sequence=sequence,
    )


def errors_of(answer: produce.PartitionProduceResponse) -> list[int]:
    return [each.batch_index for each in answer.record_errors]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
@pytest.mark.parametrize("size", [1, LARGE_BYTES])
def test_a_compacted_topic_names_the_records_without_a_key(
    kafka: Kafka, compacted: str, codec: Codec, size: int
) -> None:
    refused = kafka.produce(compacted, keyed(b"a", None, b"b", None, codec=codec, size=size))
    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert errors_of(refused) == [1, 3]
    assert "compacted" in refused.record_errors[0].batch_index_error_message
    assert "2 of a batch's 4 records" in refused.error_message

    taken = kafka.produce(compacted, keyed(b"a", b"b", codec=codec, size=size))
    assert (taken.error_code, taken.base_offset) == (ErrorCode.NONE, 0)
    assert [record.key for record in kafka.read(compacted)] == [b"a", b"b"]


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_every_version_has_the_code_and_newer_ones_the_records(kafka: Kafka, compacted: str, version: int) -> None:
    answer = kafka.call(produce, produce_request(compacted, keyed(None)), version)
    (partition,) = answer.responses[0].partition_responses
    assert partition.error_code == ErrorCode.INVALID_RECORD
    assert errors_of(partition) == ([0] if version >= 8 else [])


def test_times_beyond_the_limits_are_refused(broker: Broker, kafka: Kafka) -> None:
    topic = made(broker, {"message.timestamp.before.max.ms": "3600000", "message.timestamp.after.max.ms": "60000"})
    now_ms = SystemClock().now_ms()
    for times_ms, bad in [((now_ms, now_ms - 4_000_000), [1]), ((now_ms + 100_000, now_ms), [0])]:
        answer = kafka.produce(topic, keyed(None, None, times_ms=times_ms, codec=Codec.GZIP))
        assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
        assert errors_of(answer) == bad
    assert kafka.produce(topic, keyed(None, times_ms=(now_ms,))).error_code == ErrorCode.NONE


def test_any_time_is_taken_by_default(kafka: Kafka, topic: str) -> None:
    for time_ms in (0, 2**60):
        assert kafka.produce(topic, keyed(None, times_ms=(time_ms,))).error_code == ErrorCode.NONE


@pytest.mark.parametrize("config", [{"streamhouse.validate": "true"}, {"cleanup.policy": "compact"}])
def test_a_count_that_lies_is_refused_where_records_are_read(
    broker: Broker, kafka: Kafka, config: dict[str, str]
) -> None:
    topic = made(broker, config)
    assert kafka.produce(topic, lying(3)).error_code == ErrorCode.INVALID_RECORD
    assert kafka.produce(topic, inflating()).error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert kafka.produce(topic, keyed(b"k")).base_offset == 0


@pytest.mark.parametrize("config", [{"cleanup.policy": "compact"}, {"compression.type": "lz4"}, {}])
def test_a_producers_batches_keep_their_order(broker: Broker, kafka: Kafka, config: dict[str, str]) -> None:
    """Those that a thread looks at, those that are looked at at once, and, without a rule, those that are not looked at
    at all, behind one whose largest timestamp has to be put in."""
    topic = made(broker, config)
    codecs = [Codec.ZSTD, Codec.NONE, Codec.GZIP, Codec.NONE, Codec.NONE]
    sizes = [LARGE_BYTES, 1, 1, LARGE_BYTES, 1]
    batches = []
    for number in range(50):
        batch = keyed(b"k", codec=codecs[number % 5], size=sizes[number % 5], sequence=number)
        batches.append(understated(batch) if number % 3 == 0 else batch)

    kafka.socket.sendall(b"".join(kafka.encode(produce, produce_request(topic, batch), 9) for batch in batches))
    answers = [kafka.receive().responses[0].partition_responses[0] for _ in batches]

    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, number) for number in range(50)]


def understated(batch: bytes) -> bytes:
    return stamp_max_timestamp(batch, -1)


def test_partitions_of_one_request_are_judged_each_for_itself(kafka: Kafka, compacted: str) -> None:
    data = [
        produce.PartitionProduceData(index=0, records=keyed(None, codec=Codec.LZ4)),
        produce.PartitionProduceData(index=1, records=keyed(b"k", codec=Codec.LZ4)),
        produce.PartitionProduceData(index=9, records=keyed(b"k")),
    ]
    request = produce.ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[produce.TopicProduceData(name=compacted, partition_data=data)]
    )
    answers = kafka.call(produce, request, 9).responses[0].partition_responses
    assert [answer.error_code for answer in answers] == [
        ErrorCode.INVALID_RECORD,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_without_acknowledgements_a_refusal_ends_the_connection(kafka: Kafka, compacted: str, codec: Codec) -> None:
    kafka.send_produce(compacted, keyed(None, codec=codec), acks=0)
    assert kafka.is_closed_by_broker()


def test_records_are_not_read_on_the_loop(kafka: Kafka, compacted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []
    looked = admission._admit_all

    def noted(*arguments: object) -> object:
        threads.append(threading.current_thread().name.split("_")[0])
        return looked(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(admission, "_admit_all", noted)
    assert kafka.produce(compacted, keyed(b"k", codec=Codec.ZSTD)).error_code == ErrorCode.NONE
    assert kafka.produce(compacted, keyed(b"k", size=LARGE_BYTES)).error_code == ErrorCode.NONE
    assert threads == ["log", "log"]


def test_many_small_batches_of_one_request_are_not_read_on_the_loop(
    kafka: Kafka, compacted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[str] = set()
    looked = admission._admit_all

    def noted(*arguments: object) -> object:
        threads.add(threading.current_thread().name.split("_")[0])
        return looked(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(admission, "_admit_all", noted)
    data = [produce.PartitionProduceData(index=0, records=keyed(b"k", size=10_000)) for _ in range(10)]
    request = produce.ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[produce.TopicProduceData(name=compacted, partition_data=data)]
    )
    answers = kafka.call(produce, request, 9).responses[0].partition_responses

    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, number) for number in range(10)]
    assert threads == {"log"}


def test_a_topic_without_rules_keeps_its_fast_way(broker: Broker, kafka: Kafka, topic: str) -> None:
    topics = broker.node.broker.topics
    assert topics.leader_by_key(topic.encode(), 0, is_id=False) is not None

    configure(broker, topic, {"cleanup.policy": "compact"})
    assert topics.leader_by_key(topic.encode(), 0, is_id=False) is None
    assert kafka.produce(topic, keyed(None)).error_code == ErrorCode.INVALID_RECORD

    configure(broker, topic, {"cleanup.policy": "delete"})
    assert topics.leader_by_key(topic.encode(), 0, is_id=False) is not None
    assert kafka.produce(topic, keyed(None)).error_code == ErrorCode.NONE


def test_rest_refuses_them_alone_and_says_why(broker: Broker, compacted: str) -> None:
    rest = RestCaller(broker.endpoint)
    sent = [{"key": "a", "value": 1}, {"value": 2}, {"key": "b", "value": 3}]
    (first, refused, last) = rest.post(
        f"topics/{compacted}/records", {"records": [{**record, "partition": 0} for record in sent]}, status=207
    )["records"]
    assert refused["error"]["code"] == "invalid-records"
    assert "compacted" in refused["error"]["detail"]
    assert (first["offset"], last["offset"]) == (0, 1)


async def test_grpc_says_why(api: Api, compacted: str) -> None:
    request = pb.ProduceRequest(topic=compacted, records=[pb.NewRecord(value=b"v")])
    assert await api.refusal("Records.Produce", request) == ("INVALID_ARGUMENT", "invalid-records")


async def test_requests_of_a_stream_that_are_gathered_do_not_fail_together(api: Api, compacted: str) -> None:
    call = api.converse("Records.ProduceStream")
    for key in (b"a", None, b"b", None, b"c"):
        record = pb.NewRecord(key=key, value=b"v", partition=0)
        await call.write(pb.ProduceStreamRequest(topic=compacted, records=[record]))
    await call.done_writing()
    answers = [answer async for answer in call]
    assert [list(answer.stored.offsets) or answer.error.code for answer in answers] == [
        [0],
        "invalid-records",
        [1],
        "invalid-records",
        [2],
    ]


def test_flume_refuses_them_alone(broker: Broker, compacted: str) -> None:
    """Also when they come together."""
    with RawFlume(broker.flume_address) as flume:
        assert flume.produce(compacted, b"v")[2] == UNKNOWN
        keys = [b"a", b"", b"b"]
        flume.socket.sendall(
            b"".join(
                raw.request(raw.PRODUCE, number, raw.produce(compacted, b"v", key=key, partition=0))
                for number, key in enumerate(keys)
            )
        )
        answers = dict(flume.receive() for _ in keys)
    codes = {number: int.from_bytes(answer[-2:], "big") for number, answer in answers.items()}
    assert codes == {0: NONE, 1: UNKNOWN, 2: NONE}


async def test_our_producer_raises_what_kafka_says(broker: Broker, compacted: str) -> None:
    async with Cluster.connect(broker.bootstrap) as cluster, Producer(cluster) as producer:
        with pytest.raises(InvalidRecords, match="compacted"):
            await (await producer.send(compacted, value=b"v", partition=0))


def test_librdkafka_hears_that_a_record_is_invalid(broker: Broker, compacted: str) -> None:
    codes: list[int | None] = []
    client = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "compression.type": "zstd"}
    )
    for key in (None, b"k"):
        client.produce(
            compacted, b"v", key, 0, on_delivery=lambda error, _: codes.append(error.code() if error else None)
        )
        assert client.flush(HUNG_SECONDS) == 0
    assert codes == [ErrorCode.INVALID_RECORD, None]
