"""Reading records: positions, ends, the middle of batches, and brokers that answer badly."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from streamhouse.client.cluster import Cluster
from streamhouse.client.consumer import ConsumedRecord, Consumer, ConsumerOptions
from streamhouse.format.batch import place
from streamhouse.format.records import Record, encode_records
from streamhouse.model.errors import CorruptData, NotLeader, OffsetOutOfRange, UnreadableRecords
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import fetch

Result = TypeVar("Result")


def store(broker: Any, topic: str, partition: int, *batches: list[bytes]) -> None:
    """Puts batches of these values into the fake broker's log."""
    offset = broker._end(broker.batches[topic, partition])
    for values in batches:
        batch = bytearray(encode_records([Record(0, 1_700_000_000_000, None, value) for value in values]))
        place(batch, 0, offset, 1)
        broker.batches[topic, partition].append(bytes(batch))
        offset += len(values)


def with_cluster(broker: Any, scenario: Callable[[Cluster], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with broker, Cluster.connect(str(broker.address)) as cluster:
            return await scenario(cluster)

    return asyncio.run(run())


async def read_to_end(consumer: Consumer) -> list[ConsumedRecord]:
    records: list[ConsumedRecord] = []
    while not consumer.at_end():
        records += await consumer.poll(max_wait_ms=1)
    return records


def test_a_partition_is_read_from_its_position_to_its_end(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    store(fake_broker, "orders", 0, [b"0", b"1", b"2"], [b"3", b"4"], [b"5", b"6"])

    records = with_cluster(
        fake_broker, lambda cluster: read_to_end(Consumer(cluster, "orders", {0: 1}, stop_at={0: 6}))
    )

    assert [(record.offset, record.value) for record in records] == [(n, b"%d" % n) for n in range(1, 6)]


def test_several_partitions_are_read_side_by_side(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 3}
    for partition in range(3):
        store(fake_broker, "orders", partition, [b"%d" % partition] * (partition + 1))

    records = with_cluster(
        fake_broker,
        lambda cluster: read_to_end(Consumer(cluster, "orders", {0: 0, 1: 0, 2: 0}, stop_at={0: 1, 1: 2, 2: 3})),
    )

    assert sorted((record.partition, record.offset) for record in records) == [
        (0, 0),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
        (2, 2),
    ]


def test_an_answer_cut_in_the_middle_of_a_batch_is_read_up_to_there(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    store(fake_broker, "orders", 0, [bytes(100)] * 5, [bytes(100)] * 5, [bytes(100)] * 5)
    options = ConsumerOptions(partition_max_bytes=700)

    records = with_cluster(
        fake_broker,
        lambda cluster: read_to_end(Consumer(cluster, "orders", {0: 0}, stop_at={0: 15}, options=options)),
    )

    assert [record.offset for record in records] == list(range(15))
    assert len(fake_broker.received(fetch.FetchRequest)) == 3


def test_without_an_end_there_is_always_more_to_come(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    store(fake_broker, "orders", 0, [b"a"])

    async def scenario(cluster: Cluster) -> list[list[bytes | None]]:
        consumer = Consumer(cluster, "orders", {0: 0})
        seen = [[record.value for record in await consumer.poll(max_wait_ms=1)]]
        seen.append([record.value for record in await consumer.poll(max_wait_ms=1)])
        store(fake_broker, "orders", 0, [b"b"])
        seen.append([record.value for record in await consumer.poll(max_wait_ms=1)])
        assert not consumer.at_end()
        return seen

    assert with_cluster(fake_broker, scenario) == [[b"a"], [], [b"b"]]


def test_an_offset_that_the_log_does_not_hold_is_named(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}

    with pytest.raises(OffsetOutOfRange, match="orders/0 does not hold offset 99"):
        with_cluster(fake_broker, lambda cluster: Consumer(cluster, "orders", {0: 99}).poll(max_wait_ms=1))


def test_damaged_records_are_never_handed_out(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    store(fake_broker, "orders", 0, [b"precious"])
    damaged = bytearray(fake_broker.batches["orders", 0][0])
    damaged[-3] ^= 1
    fake_broker.batches["orders", 0][0] = bytes(damaged)

    with pytest.raises(CorruptData, match="orders/0"):
        with_cluster(fake_broker, lambda cluster: Consumer(cluster, "orders", {0: 0}).poll(max_wait_ms=1))


def test_what_is_before_damaged_records_and_in_other_partitions_comes_first(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 2}
    for values in ([b"before"], [b"lost"], [b"after"]):
        store(fake_broker, "orders", 0, values)
    store(fake_broker, "orders", 1, [b"other"])
    damaged = bytearray(fake_broker.batches["orders", 0][1])
    damaged[-3] ^= 1
    fake_broker.batches["orders", 0][1] = bytes(damaged)

    async def scenario(cluster: Cluster) -> list[list[bytes | None]]:
        consumer = Consumer(cluster, "orders", {0: 0, 1: 0})
        seen = [sorted(record.value or b"" for record in await consumer.poll(max_wait_ms=1))]
        for _ in range(2):
            with pytest.raises(UnreadableRecords, match="orders/0") as problem:
                await consumer.poll(max_wait_ms=1)
        assert problem.value.next_offset == 2
        consumer.seek(0, problem.value.next_offset)
        return [*seen, [record.value for record in await consumer.poll(max_wait_ms=1)]]

    assert with_cluster(fake_broker, scenario) == [[b"before", b"other"], [b"after"]]


def test_a_leader_that_moved_is_asked_for_again(fake_broker: Any, fail_first: Any) -> None:
    fake_broker.topics = {"orders": 1}
    store(fake_broker, "orders", 0, [b"a"])

    def moved(request: Any, version: int) -> Any:
        gone = fetch.PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, records=None)
        return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic="orders", partitions=[gone])])

    fake_broker.answers[fetch.API_KEY] = fail_first(1, moved, fake_broker.answer_fetch)

    records = with_cluster(
        fake_broker, lambda cluster: read_to_end(Consumer(cluster, "orders", {0: 0}, stop_at={0: 1}))
    )

    assert [record.value for record in records] == [b"a"]


def test_a_leader_that_stays_away_is_given_up_when_the_time_is_up(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}

    def moved(request: Any, version: int) -> Any:
        gone = fetch.PartitionData(partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, records=None)
        return fetch.FetchResponse(responses=[fetch.FetchableTopicResponse(topic="orders", partitions=[gone])])

    fake_broker.answers[fetch.API_KEY] = moved
    options = ConsumerOptions(retry_ms=50)

    with pytest.raises(NotLeader):
        with_cluster(
            fake_broker, lambda cluster: Consumer(cluster, "orders", {0: 0}, options=options).poll(max_wait_ms=1)
        )
