"""Sending records: partitions, batches, retries, idempotence, and failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from streamhouse.client.cluster import Cluster
from streamhouse.client.partition_sender import Acks, Delivered, ProducerOptions
from streamhouse.client.producer import Producer
from streamhouse.core.partitioner import partition_for_key
from streamhouse.format.compression import Codec
from streamhouse.format.records import decode_records
from streamhouse.model.errors import (
    BatchTooLarge,
    InvalidInput,
    NotFound,
    OutOfOrderSequence,
    StorageUnavailable,
    StreamHouseError,
)
from streamhouse.testing.clock import MovableClock
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import init_producer_id, metadata, produce

Result = TypeVar("Result")


def with_producer(
    broker: Any, scenario: Callable[[Producer], Awaitable[Result]], options: ProducerOptions | None = None
) -> Result:
    async def run() -> Result:
        async with broker, Cluster.connect(str(broker.address)) as cluster, Producer(cluster, options) as producer:
            return await scenario(producer)

    return asyncio.run(run())


async def send_all(producer: Producer, topic: str, values: list[bytes], **where: Any) -> list[Delivered]:
    sent = [await producer.send(topic, value=value, **where) for value in values]
    return list(await asyncio.gather(*sent))


def values_in(broker: Any, topic: str, partition: int = 0) -> list[bytes | None]:
    return [record.value for batch in broker.batches[topic, partition] for record in decode_records(batch)]


def test_records_come_back_with_the_offsets_they_got(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    values = [b"%d" % number for number in range(1000)]

    delivered = with_producer(fake_broker, lambda producer: send_all(producer, "orders", values))

    assert [record.offset for record in delivered] == list(range(1000))
    assert values_in(fake_broker, "orders") == values
    assert len(fake_broker.batches["orders", 0]) < 50, "records should travel in batches"


def test_partitions_that_were_added_are_used_when_what_is_known_is_old(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    clock = MovableClock()
    keys = [b"%d" % number for number in range(20)]

    async def run() -> None:
        async with fake_broker, Producer(Cluster([fake_broker.address], clock=clock)) as producer:
            await asyncio.gather(*[await producer.send("orders", value=b"old", key=key) for key in keys])
            fake_broker.topics = {"orders": 4}
            await asyncio.gather(*[await producer.send("orders", value=b"still", key=key) for key in keys])
            clock.pass_time(300_000)
            await asyncio.gather(*[await producer.send("orders", value=b"new", key=key) for key in keys])

    asyncio.run(run())

    assert set(values_in(fake_broker, "orders", 0)) == {b"old", b"still", b"new"}
    assert {value for number in (1, 2, 3) for value in values_in(fake_broker, "orders", number)} == {b"new"}


def test_what_is_known_of_a_topic_is_used_when_nobody_can_be_asked(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    clock = MovableClock()

    async def run() -> None:
        async with fake_broker:
            cluster = Cluster([fake_broker.address], clock=clock)
            known = await cluster.topic("orders")
            fake_broker.answers[metadata.API_KEY] = lambda *_: ConnectionResetError
            clock.pass_time(300_000)

            assert await cluster.topic("orders") == known
            assert cluster.known_topic("orders") == known
            await cluster.close()

    asyncio.run(run())


def test_keys_values_headers_nulls_and_timestamps_arrive_as_sent(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}

    async def scenario(producer: Producer) -> None:
        await producer.send(
            "orders", key=b"k", value=None, headers=[("a", b"1"), ("a", None)], timestamp_ms=1_700_000_000_000
        )

    with_producer(fake_broker, scenario)

    (record,) = decode_records(fake_broker.batches["orders", 0][0])
    assert record == (0, 1_700_000_000_000, b"k", None, (("a", b"1"), ("a", None)))


def test_a_key_decides_the_partition_as_in_kafka(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 5}
    keys = [b"%d" % number for number in range(100)]

    async def scenario(producer: Producer) -> list[int]:
        sent = [await producer.send("orders", key=key, value=b"") for key in keys]
        return [record.partition for record in await asyncio.gather(*sent)]

    assert with_producer(fake_broker, scenario) == [partition_for_key(key, 5) for key in keys]


def test_records_without_a_key_reach_every_partition(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 4}

    delivered = with_producer(fake_broker, lambda producer: send_all(producer, "orders", [bytes(1000)] * 200))

    assert {record.partition for record in delivered} == {0, 1, 2, 3}


def test_a_partition_that_does_not_exist_is_named(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 2}

    with pytest.raises(NotFound, match="no partition 2"):
        with_producer(fake_broker, lambda producer: send_all(producer, "orders", [b"x"], partition=2))


def test_a_topic_that_does_not_exist_is_named(fake_broker: Any) -> None:
    with pytest.raises(NotFound, match="'orders'"):
        with_producer(fake_broker, lambda producer: send_all(producer, "orders", [b"x"]))


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_can_be_read_back(fake_broker: Any, codec: Codec) -> None:
    fake_broker.topics = {"orders": 1}
    values = [b"the same again " * 10] * 20

    with_producer(fake_broker, lambda producer: send_all(producer, "orders", values), ProducerOptions(codec=codec))

    assert values_in(fake_broker, "orders") == values
    assert {header.codec for header in fake_broker.headers("orders", 0)} == {codec}


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR])
def test_a_refusal_that_may_pass_is_tried_again_after_asking_for_the_leaders(
    fake_broker: Any, fail_first: Any, code: ErrorCode
) -> None:
    fake_broker.topics = {"orders": 1}
    refuse = lambda request, version: fake_broker.produced(request, error_code=code)  # noqa: E731
    fake_broker.answers[produce.API_KEY] = fail_first(2, refuse, fake_broker.answer_produce)

    (delivered,) = with_producer(fake_broker, lambda producer: send_all(producer, "orders", [b"x"]))

    assert delivered.offset == 0
    assert len(fake_broker.received(metadata.MetadataRequest)) == 3


def test_a_lost_answer_is_repeated_with_the_same_producer_id_and_sequence(fake_broker: Any, fail_first: Any) -> None:
    fake_broker.topics = {"orders": 1}

    def store_and_hang_up(request: Any, version: int) -> Any:
        fake_broker.answer_produce(request, version)
        return ConnectionResetError

    fake_broker.answers[produce.API_KEY] = fail_first(1, store_and_hang_up, fake_broker.answer_produce)

    with_producer(fake_broker, lambda producer: send_all(producer, "orders", [b"x"]))

    first, second = fake_broker.headers("orders", 0)
    assert (first.producer_id, first.base_sequence) == (second.producer_id, second.base_sequence) == (101, 0)
    assert fake_broker.connections == 2


def test_sequences_go_on_from_batch_to_batch(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}

    async def scenario(producer: Producer) -> None:
        for count in (3, 2, 1):
            await send_all(producer, "orders", [b"x"] * count)

    with_producer(fake_broker, scenario)

    headers = fake_broker.headers("orders", 0)
    assert [header.base_sequence for header in headers] == [
        sum(header.record_count for header in headers[:index]) for index in range(len(headers))
    ]


def test_a_duplicate_whose_place_is_forgotten_counts_as_delivered(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    fake_broker.answers[produce.API_KEY] = lambda request, version: fake_broker.produced(
        request, error_code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    )

    (delivered,) = with_producer(fake_broker, lambda producer: send_all(producer, "orders", [b"x"]))

    assert delivered.offset is None


def test_after_a_batch_was_given_up_the_next_one_has_a_new_identity(fake_broker: Any, fail_first: Any) -> None:
    fake_broker.topics = {"orders": 1}
    refuse = lambda request, version: fake_broker.produced(  # noqa: E731
        request, error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    )
    fake_broker.answers[produce.API_KEY] = fail_first(1, refuse, fake_broker.answer_produce)

    async def scenario(producer: Producer) -> None:
        with pytest.raises(OutOfOrderSequence):
            await send_all(producer, "orders", [b"x"])
        await send_all(producer, "orders", [b"y"])

    with_producer(fake_broker, scenario)

    (header,) = fake_broker.headers("orders", 0)
    assert (header.producer_id, header.base_sequence) == (102, 0)
    assert len(fake_broker.received(init_producer_id.InitProducerIdRequest)) == 2


def test_a_refusal_that_stays_fails_when_the_time_is_up(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    fake_broker.answers[produce.API_KEY] = lambda request, version: fake_broker.produced(
        request, error_code=ErrorCode.KAFKA_STORAGE_ERROR
    )

    with pytest.raises(StorageUnavailable, match="producing to orders/0"):
        with_producer(
            fake_broker,
            lambda producer: send_all(producer, "orders", [b"x"]),
            ProducerOptions(delivery_timeout_ms=100),
        )


def test_a_batch_that_the_topic_does_not_take_is_halved_until_it_does(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}

    def refuse_large(request: Any, version: int) -> Any:
        if len(request.topic_data[0].partition_data[0].records) > 1000:
            return fake_broker.produced(request, error_code=ErrorCode.MESSAGE_TOO_LARGE)
        return fake_broker.answer_produce(request, version)

    fake_broker.answers[produce.API_KEY] = refuse_large
    values = [b"%03d" % number + bytes(97) for number in range(64)]

    async def scenario(producer: Producer) -> list[Delivered | BaseException]:
        sent = [await producer.send("orders", value=value) for value in [*values, bytes(2000)]]
        return await asyncio.gather(*sent, return_exceptions=True)

    *delivered, refused = with_producer(fake_broker, scenario)

    assert values_in(fake_broker, "orders") == values
    assert [record.offset for record in delivered if isinstance(record, Delivered)] == list(range(64))
    assert isinstance(refused, BatchTooLarge)
    headers = fake_broker.headers("orders", 0)
    assert [header.base_sequence for header in headers] == [header.base_offset for header in headers]


def test_without_acknowledgements_nothing_is_waited_for(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    options = ProducerOptions(acks=Acks.NONE, idempotent=False)

    async def scenario(producer: Producer) -> list[Delivered]:
        delivered = await send_all(producer, "orders", [b"a", b"b"])
        # The broker answers requests in order, so once this one is answered the others were stored.
        await producer._cluster.refresh(["orders"])
        return delivered

    delivered = with_producer(fake_broker, scenario, options)

    assert [record.offset for record in delivered] == [None, None]
    assert values_in(fake_broker, "orders") == [b"a", b"b"]


def test_idempotence_needs_all_acknowledgements(fake_broker: Any) -> None:
    with pytest.raises(InvalidInput, match="acks=all"):
        with_producer(fake_broker, lambda producer: asyncio.sleep(0), ProducerOptions(acks=Acks.LEADER))


def test_a_full_buffer_makes_the_sender_wait_instead_of_growing(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    options = ProducerOptions(buffer_bytes=10_000, batch_bytes=2_000)
    most = 0

    async def scenario(producer: Producer) -> None:
        nonlocal most
        for _ in range(500):
            await producer.send("orders", value=bytes(500))
            most = max(most, producer._buffered_bytes)

    with_producer(fake_broker, scenario, options)

    assert most <= 10_000
    assert len(values_in(fake_broker, "orders")) == 500


def test_every_record_is_told_of_the_failure_of_its_batch(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    fake_broker.answers[produce.API_KEY] = lambda request, version: fake_broker.produced(
        request, error_code=ErrorCode.INVALID_RECORD
    )

    async def scenario(producer: Producer) -> list[Any]:
        sent = [await producer.send("orders", value=b"x") for _ in range(10)]
        return await asyncio.gather(*sent, return_exceptions=True)

    outcomes = with_producer(fake_broker, scenario)

    assert all(isinstance(outcome, StreamHouseError) for outcome in outcomes)
