"""The Python client over both of its protocols, async and sync, against a real node."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from node.wait import HUNG_SECONDS, eventually
from streamhouse.client import AsyncClient, BadRecord, Client, Delivery, Record, kafka_transport
from streamhouse.model.errors import (
    AlreadyExists,
    BatchTooLarge,
    InvalidInput,
    InvalidPartitions,
    NotFound,
    PolicyViolation,
    StreamHouseError,
    Unavailable,
)
from streamhouse.testing import Broker

DOCS = Path(__file__).parents[2] / "docs" / "python-client.md"
PROTOCOLS = ("kafka", "grpc")


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(grpc=True, default_partitions=2, group_consumer_heartbeat_interval=100) as running:
        yield running


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(broker: Broker, protocol: str) -> str:
    return url_of(broker, protocol)


def url_of(broker: Broker, protocol: str) -> str:
    return f"kafka://{broker.bootstrap}" if protocol == "kafka" else f"grpc://{broker.grpc_address}"


@dataclass
class Order:
    id: int
    total: float


class Paid(msgspec.Struct, tag=True):
    at: datetime


class Shipped(msgspec.Struct, tag=True):
    weight_kg: float


# Topics that grow


async def test_who_follows_a_topic_reads_the_partitions_that_are_added_from_their_beginning(
    url: str, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_transport, "_LOOK_MS", 0)
    topic = f"growing-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=1)
        await client.send(topic, "old")
        async with client.consumer(topic, start="latest") as consumer:
            await client.create_partitions(topic, partitions=3)
            await client.send(topic, "in a new one", partition=2)
            await client.send(topic, "what a reader wakes up for", partition=0)
            read = []
            async for record in consumer:
                read.append(record)
                if len(read) == 2:
                    break
        counts = {info.name: info.partition_count for info in await client.topics()}

    assert {(record.partition, record.offset, record.value) for record in read} == {
        (0, 1, "what a reader wakes up for"),
        (2, 0, "in a new one"),
    }
    assert counts[topic] == 3


def test_a_topics_configs_may_have_units(broker: Broker, url: str, protocol: str) -> None:
    topic = f"units-{protocol}"
    with Client(url) as client:
        client.create_topic(topic, config={"retention.ms": "7d", "segment.bytes": "8MiB"})

    stored = broker.node.broker.topics.get(topic).config
    assert stored == {"retention.ms": "604800000", "segment.bytes": "8388608"}


def test_a_topic_that_cannot_grow_says_why(url: str, protocol: str) -> None:
    topic = f"grown-{protocol}"
    with Client(url) as client:
        client.create_topic(topic, partitions=2)
        with pytest.raises(InvalidPartitions, match="not be an increase"):
            client.create_partitions(topic, partitions=1)
        client.create_topic(f"fixed-{protocol}", partitions=2, config={"streamhouse.partitions.fixed": "true"})
        with pytest.raises(PolicyViolation, match="fixed"):
            client.create_partitions(f"fixed-{protocol}", partitions=3)


# Records as they are


@pytest.mark.parametrize("reader", PROTOCOLS)
async def test_what_is_sent_over_one_protocol_is_read_over_the_other(
    broker: Broker, protocol: str, reader: str
) -> None:
    topic = f"across-{protocol}-{reader}"
    sent_at = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    async with AsyncClient(url_of(broker, protocol)) as client:
        await client.create_topic(topic, partitions=1)
        producer = client.producer(topic, format="bytes", key_format="bytes")
        headers = [("h", "text"), ("h", b"\xff"), ("none", None)]
        await producer.send(b"\x00\xff", key=b"\xfe", headers=headers, timestamp=sent_at)
        await producer.send(None, key=b"gone", timestamp=sent_at)
        await producer.send(b"", key=None, timestamp=sent_at)
    async with AsyncClient(url_of(broker, reader)) as client:
        records = [
            record async for record in client.consumer(topic, format="bytes", key_format="bytes", until_end=True)
        ]
    assert [(record.offset, record.key, record.value) for record in records] == [
        (0, b"\xfe", b"\x00\xff"),
        (1, b"gone", None),
        (2, None, b""),
    ]
    assert {record.time for record in records} == {sent_at}
    assert records[0].headers == (("h", b"text"), ("h", b"\xff"), ("none", None))
    assert (records[0].header("h"), records[0].header("other")) == (b"\xff", None)


async def test_json_and_text_come_back_as_the_values_that_were_sent(url: str, protocol: str) -> None:
    values = [{"a": [1, 2.5, None, "ü"]}, "text", 7, True, [], None]
    async with AsyncClient(url) as client:
        topic = f"values-{protocol}"
        await client.create_topic(topic, partitions=1)
        for value in values:
            await client.send(topic, value, key="ключ")
        records = [record async for record in client.consumer(topic, until_end=True)]
        assert [record.value for record in records] == values
        assert {record.key for record in records} == {"ключ"}
        as_text = [record.value async for record in client.consumer(topic, format="text", until_end=True)]
        assert as_text[1:] == ['"text"', "7", "true", "[]", None]


async def test_a_key_has_one_partition_whatever_the_protocol(broker: Broker) -> None:
    async with AsyncClient(url_of(broker, "kafka")) as one, AsyncClient(url_of(broker, "grpc")) as other:
        await one.create_topic("keys", partitions=7)
        for key in map(str, range(20)):
            assert (await one.send("keys", 1, key=key)).partition == (await other.send("keys", 1, key=key)).partition


# Types


async def test_values_are_of_the_type_that_was_asked_for(url: str, protocol: str) -> None:
    topic = f"typed-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=1)
        await client.send(topic, Order(1, 12.5))
        (order,) = [record.value async for record in client.consumer(topic, type=Order, until_end=True)]
        assert order == Order(1, 12.5)

        events = [Paid(datetime(2026, 5, 6, tzinfo=UTC)), Shipped(1.5), None]
        for event in events:
            await client.send(f"{topic}-events", event, partition=0)
        async with client.consumer(f"{topic}-events", type=Paid | Shipped | None, until_end=True) as both:
            assert [record.value async for record in both] == events
        with pytest.raises(InvalidInput, match="JSON"):
            client.consumer(topic, type=Order | Paid)


async def test_a_record_of_another_type_is_handed_over_raw_and_the_next_is_read(url: str, protocol: str) -> None:
    topic = f"bad-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=1)
        await client.producer(topic, format="bytes").send(b"{not json")
        await client.send(topic, {"id": "one", "total": 1})
        await client.send(topic, None)
        await client.producer(topic, key_format="bytes").send({"id": 1, "total": 1}, key=b"\xff")
        await client.send(topic, {"id": 5, "total": 1})
        consumer = client.consumer(topic, type=Order, until_end=True)
        bad: list[bytes | None] = []
        for _ in range(4):
            with pytest.raises(BadRecord, match=f"{topic}/0 offset {len(bad)}") as raised:
                await anext(consumer)
            bad.append(raised.value.record.value)
        assert bad == [b"{not json", b'{"id":"one","total":1}', None, b'{"id":1,"total":1}']
        assert (await anext(consumer)).value == Order(5, 1)


class Reversed:
    def encode(self, value: str) -> bytes | None:
        return value[::-1].encode()

    def decode(self, data: bytes | None) -> str:
        return (data or b"").decode()[::-1]


async def test_a_codec_of_ones_own_takes_the_place_of_a_format(url: str, protocol: str) -> None:
    topic = f"codec-{protocol}"
    async with AsyncClient(url) as client:
        await client.producer(topic, format=Reversed()).send("abc")
        assert [r.value async for r in client.consumer(topic, format="text", until_end=True)] == ["cba"]
        assert [r.value async for r in client.consumer(topic, format=Reversed(), until_end=True)] == ["abc"]


@pytest.mark.parametrize(
    ("value", "formats"),
    [(object(), {}), (1, {"format": "text"}), ("text", {"format": "bytes"}), (1, {"format": "xml"})],
)
async def test_what_cannot_be_written_is_said_before_anything_is_sent(
    url: str, value: Any, formats: dict[str, Any]
) -> None:
    async with AsyncClient(url) as client:
        with pytest.raises(InvalidInput):
            await client.producer("never-made", **formats).send(value)
        assert "never-made" not in {topic.name for topic in await client.topics()}


# Sending many


async def test_many_records_keep_their_order_and_the_end_of_the_block_waits_for_all(url: str, protocol: str) -> None:
    topic = f"many-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=1)
        async with client.producer(topic) as producer:
            for number in range(5_000):
                await producer.enqueue(number)
        assert [r.value async for r in client.consumer(topic, until_end=True)] == list(range(5_000))


async def test_a_failure_of_what_was_enqueued_is_raised_by_the_flush_and_only_once(url: str, protocol: str) -> None:
    topic = f"refused-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=1, config={"max.message.bytes": "2000"})
        producer = client.producer(topic, format="bytes")
        await producer.enqueue(b"x" * 10_000)
        with pytest.raises(BatchTooLarge):
            await producer.flush()
        await producer.flush()
        assert await producer.send(b"small") == Delivery(topic=topic, partition=0, offset=0)
        await producer.enqueue(b"x" * 10_000)
        with pytest.raises(BatchTooLarge):
            await producer.close()


# Where to start and where to end


async def test_a_consumer_starts_where_it_is_told_to(url: str, protocol: str) -> None:
    topic = f"start-{protocol}"
    times = [datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2, 3)]
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=2)
        for number, moment in enumerate(times):
            await client.producer(topic).send(number, partition=0, timestamp=moment)
        by_time = client.consumer(topic, start=times[1], until_end=True)
        assert [record.value async for record in by_time] == [1, 2]
        async with client.consumer(topic, start="latest") as latest:
            assert len(latest.assignment) == 2
            assert await latest.poll(max_wait_ms=50) is None
            await client.send(topic, "new", partition=1)
            record = await anext(latest)
            assert (record.partition, record.value) == (1, "new")
        with pytest.raises(InvalidInput, match="time zone"):
            await client.consumer(topic, start=datetime(2026, 1, 1)).start()


# Groups


async def take(client: AsyncClient, topic: str, count: int, **options: Any) -> list[Any]:
    """`count` values of a group's new member, that then leaves as after a good end."""
    values: list[Any] = []
    async with client.consumer(topic, group=topic, **options) as consumer:
        async with asyncio.timeout(HUNG_SECONDS):
            async for record in consumer:
                values.append(record.value)
                if len(values) == count:
                    break
    return values


async def fill(client: AsyncClient, topic: str, count: int) -> None:
    await client.create_topic(topic, partitions=1)
    async with client.producer(topic) as producer:
        for number in range(count):
            await producer.enqueue(number)


async def test_a_group_goes_on_behind_the_record_that_was_dealt_with_last(url: str, protocol: str) -> None:
    topic = f"resume-{protocol}"
    async with AsyncClient(url) as client:
        await fill(client, topic, 10)
        assert await take(client, topic, 3) == [0, 1, 2]
        assert await take(client, topic, 2) == [3, 4]
        assert await take(client, topic, 5) == [5, 6, 7, 8, 9]


async def divide_by_what_is_left(client: AsyncClient, topic: str) -> None:
    async with client.consumer(topic, group=topic) as consumer:
        async for record in consumer:
            assert 1 / (2 - record.value) > 0


async def test_a_record_whose_handling_failed_comes_again(url: str, protocol: str) -> None:
    topic = f"again-{protocol}"
    async with AsyncClient(url) as client:
        await fill(client, topic, 6)
        with pytest.raises(ZeroDivisionError):
            await divide_by_what_is_left(client, topic)
        assert await take(client, topic, 4) == [2, 3, 4, 5]


async def test_without_auto_commit_only_what_is_asked_for_is_committed(url: str, protocol: str) -> None:
    topic = f"manual-{protocol}"
    async with AsyncClient(url) as client:
        await fill(client, topic, 9)
        assert await take(client, topic, 3, auto_commit=False) == [0, 1, 2]
        async with client.consumer(topic, group=topic, auto_commit=False) as consumer:
            records = [await anext(consumer) for _ in range(5)]
            assert [record.value for record in records] == [0, 1, 2, 3, 4]
            await consumer.commit(records[1])
        assert await take(client, topic, 1, auto_commit=False) == [2]
        async with client.consumer(topic, group=topic, auto_commit=False) as consumer:
            for _ in range(4):
                await anext(consumer)
            await consumer.commit()
        assert await take(client, topic, 3) == [6, 7, 8]


async def test_members_of_a_group_share_its_partitions(url: str, protocol: str) -> None:
    topic = f"shared-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=2)
        async with client.consumer(topic, group=topic) as one, client.consumer(topic, group=topic) as other:
            async with asyncio.timeout(HUNG_SECONDS):
                while not (len(one.assignment) == len(other.assignment) == 1):
                    await one.poll(max_wait_ms=20)
                    await other.poll(max_wait_ms=20)
            assert one.assignment != other.assignment
            for partition in range(2):
                await client.send(topic, "it", partition=partition)
            got = await asyncio.wait_for(asyncio.gather(anext(one), anext(other)), HUNG_SECONDS)
            assert sorted(record.partition for record in got) == [0, 1]


async def test_a_consumer_that_is_not_closed_leaves_with_its_client(url: str, protocol: str) -> None:
    topic = f"forgotten-{protocol}"
    async with AsyncClient(url) as client:
        await fill(client, topic, 4)
        async for record in client.consumer(topic, group=topic):
            if record.value == 1:
                break
    async with AsyncClient(url) as client:
        assert await take(client, topic, 2) == [2, 3]


@pytest.mark.parametrize(
    "options",
    [
        {"group": "g", "until_end": True},
        {"group": "g", "start": datetime(2026, 1, 1, tzinfo=UTC)},
        {"format": "text", "type": Order},
    ],
)
async def test_options_that_contradict_one_another_are_refused(url: str, options: dict[str, Any]) -> None:
    async with AsyncClient(url) as client:
        with pytest.raises(InvalidInput):
            client.consumer("orders", **options)
        with pytest.raises(InvalidInput):
            client.consumer("one", "two")


async def test_without_a_group_there_is_nothing_to_commit(url: str, protocol: str) -> None:
    topic = f"groupless-{protocol}"
    async with AsyncClient(url) as client:
        await fill(client, topic, 1)
        consumer = client.consumer(topic)
        with pytest.raises(InvalidInput, match="group"):
            await consumer.commit(await anext(consumer))


# Topics and failures


async def test_topics_are_made_listed_and_deleted(url: str, protocol: str) -> None:
    topic = f"admin-{protocol}"
    async with AsyncClient(url) as client:
        await client.create_topic(topic, partitions=5, config={"retention.ms": "60000"})
        with pytest.raises(AlreadyExists):
            await client.create_topic(topic)
        assert {known.name: known.partition_count for known in await client.topics()}[topic] == 5
        await client.delete_topic(topic)
        assert topic not in {known.name for known in await client.topics()}
        with pytest.raises(NotFound):
            await client.delete_topic(topic)
        for options in ({}, {"group": topic}):
            with pytest.raises(NotFound):
                await client.consumer(topic, **options).start()


async def test_nobody_at_the_address_is_said_at_once(protocol: str) -> None:
    with pytest.raises(Unavailable):
        async with AsyncClient(f"{protocol}://127.0.0.1:1"):
            pass
    with pytest.raises(InvalidInput):
        AsyncClient("ftp://127.0.0.1:1")


async def test_producers_and_consumers_outlive_a_restart_of_their_node(protocol: str) -> None:
    with Broker(grpc=True, durable=True, default_partitions=1, group_consumer_heartbeat_interval=100) as broker:
        async with AsyncClient(url_of(broker, protocol)) as client:
            consumers = [client.consumer("events"), client.consumer("events", group="g")]
            for number in range(3):
                await send_in_the_end(client, number)
                for consumer in consumers:
                    async with asyncio.timeout(HUNG_SECONDS):
                        async for record in consumer:
                            if record.value == number:
                                break
                await asyncio.get_running_loop().run_in_executor(None, broker.restart)


async def send_in_the_end(client: AsyncClient, value: int) -> None:
    """Over gRPC a lost connection is the sender's to deal with."""
    async with asyncio.timeout(HUNG_SECONDS):
        while True:
            try:
                await client.send("events", value)
                return
            except Unavailable:
                await asyncio.sleep(0.05)


# The twin for code that waits


def test_the_sync_client_does_what_the_async_one_does(url: str, protocol: str) -> None:
    topic = f"sync-{protocol}"
    with Client(url) as client:
        client.create_topic(topic, partitions=1)
        assert client.send(topic, {"id": 0, "total": 1}) == Delivery(topic=topic, partition=0, offset=0)
        with client.producer(topic) as producer:
            assert producer.send(Order(1, 1)).offset == 1
            for number in range(2, 300):
                producer.enqueue(Order(number, 1))
        orders: list[Record[Order]] = list(client.consumer(topic, type=Order, until_end=True))
        assert [record.value.id for record in orders] == list(range(300))
        for start in (0, 10):
            with client.consumer(topic, group=topic, type=Order) as consumer:
                for record in consumer:
                    if record.value.id == start + 9:
                        break
        with client.consumer(topic, group=topic, auto_commit=False) as consumer:
            record_or_none = eventually(lambda: consumer.poll(max_wait_ms=100), "a record")
            assert record_or_none.value["id"] == 20
            assert [place.topic for place in consumer.assignment] == [topic]
            consumer.commit(record_or_none)
        client.delete_topic(topic)
        assert topic not in {known.name for known in client.topics()}


def test_what_the_sync_producer_enqueues_keeps_its_order_and_tells_of_failures(url: str, protocol: str) -> None:
    topic = f"bunches-{protocol}"
    with Client(url) as client:
        client.create_topic(topic, partitions=1)
        producer = client.producer(topic)
        for number in range(5_000):
            producer.enqueue(number)
        assert producer.send("last").offset == 5_000
        assert [record.value for record in client.consumer(topic, until_end=True)] == [*range(5_000), "last"]
        producer.enqueue("nowhere", partition=9)
        with pytest.raises(NotFound):
            producer.flush()
        producer.enqueue("alone")
        consumer = client.consumer(topic)
        assert "alone" in (record.value for record in consumer), "a record goes also without a flush"
        for number in range(500):
            producer.enqueue(number)
    with Client(url) as client:
        stored = [record.value for record in client.consumer(topic, until_end=True)]
        assert stored[-501:] == ["alone", *range(500)], "what was enqueued is stored when its client is closed"


def test_errors_reach_the_code_that_waits_and_a_closed_client_says_so(url: str, protocol: str) -> None:
    client = Client(url)
    with client, pytest.raises(NotFound):
        client.delete_topic("nowhere")
    with pytest.raises(StreamHouseError, match="closed"):
        client.topics()
    with pytest.raises(Unavailable), Client(f"{protocol}://127.0.0.1:1"):
        pass


# The document


def test_the_examples_of_the_document_run_as_printed(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    blocks = re.findall(r"^```python\n(.*?)^```", DOCS.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        code = block.replace("127.0.0.1:9092", broker.bootstrap).replace("127.0.0.1:50051", broker.grpc_address)
        exec(compile(code, str(DOCS), "exec"), namespace)
    printed = capsys.readouterr().out
    assert "alice 12.5" in printed
    assert "bob 3.0" in printed
    assert "total 1015.5" in printed
