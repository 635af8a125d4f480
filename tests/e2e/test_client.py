"""Our own client against a real node: what it sends is there once, whatever happens to the node meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from node.process import Node
from streamhouse.client.admin import Admin
from streamhouse.client.cluster import Cluster
from streamhouse.client.consumer import ConsumedRecord, Consumer
from streamhouse.client.partition_sender import Delivered, ProducerOptions
from streamhouse.client.producer import Producer
from streamhouse.format.compression import Codec
from streamhouse.model.errors import AlreadyExists, InvalidConfig, InvalidName, NotFound, OffsetOutOfRange


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with Node(tmp_path_factory.mktemp("node"), "--no-auto-create-topics") as running:
        yield running


async def read_all(cluster: Cluster, topic: str) -> list[ConsumedRecord]:
    admin = Admin(cluster)
    partitions = range(await admin.partition_count(topic))
    starts, ends = await admin.earliest_offsets(topic, partitions), await admin.latest_offsets(topic, partitions)
    consumer = Consumer(cluster, topic, starts, stop_at=ends)
    records: list[ConsumedRecord] = []
    while not consumer.at_end():
        records += await consumer.poll()
    return records


@pytest.mark.parametrize("codec", list(Codec))
def test_records_of_every_codec_come_back_as_they_were_sent(node: Node, codec: Codec) -> None:
    topic = f"codec-{codec.name}"
    headers = [("h", b"\x00\xff"), ("h", None)]
    sent = [
        (None, b"", ()),
        (b"", None, ()),
        (b"key", b"value" * 1000, tuple(headers)),
        (b"\xff\xfe", b"\x00", (("naïve", b""),)),
    ]

    async def scenario() -> list[ConsumedRecord]:
        async with Cluster.connect(node.bootstrap) as cluster:
            await Admin(cluster).create_topic(topic, partition_count=1)
            async with Producer(cluster, ProducerOptions(codec=codec)) as producer:
                for number, (key, value, some_headers) in enumerate(sent):
                    await producer.send(
                        topic, key=key, value=value, headers=some_headers, timestamp_ms=1_700_000_000_000 + number
                    )
            return await read_all(cluster, topic)

    records = asyncio.run(scenario())

    assert [(record.key, record.value, record.headers) for record in records] == sent
    assert [record.timestamp_ms for record in records] == [1_700_000_000_000 + number for number in range(len(sent))]


def test_a_node_that_crashes_and_returns_has_every_acknowledged_record_once(tmp_path: Path) -> None:
    async def scenario(crashing: Node) -> tuple[list[Delivered], list[ConsumedRecord]]:
        async with Cluster.connect(crashing.bootstrap) as cluster:
            await Admin(cluster).create_topic("orders", partition_count=2)
            acknowledged: list[Delivered] = []
            async with Producer(cluster) as producer:
                for burst in range(3):
                    sent = [
                        await producer.send("orders", key=b"%d" % number, value=b"%d:%d" % (burst, number))
                        for number in range(2000)
                    ]
                    if burst:
                        await asyncio.to_thread(crashing.restart)
                    acknowledged += await asyncio.gather(*sent)
            return acknowledged, await read_all(cluster, "orders")

    with Node(tmp_path) as node:
        acknowledged, records = asyncio.run(scenario(node))

    values = [record.value for record in records]
    assert len(values) == len(set(values)) == len(acknowledged) == 6000
    places = {(record.partition, record.offset) for record in records}
    assert all((done.partition, done.offset) in places for done in acknowledged if done.offset is not None)


def test_topics_are_created_described_altered_and_deleted(node: Node) -> None:
    async def scenario() -> None:
        async with Cluster.connect(node.bootstrap) as cluster:
            admin = Admin(cluster)
            await admin.create_topic("checked", partition_count=1, validate_only=True)
            assert "checked" not in [topic.name for topic in await admin.list_topics()]
            await admin.create_topic("administered", partition_count=3, configs={"retention.ms": "5000"})
            with pytest.raises(AlreadyExists):
                await admin.create_topic("administered")
            with pytest.raises(InvalidName):
                await admin.create_topic("no/slashes")
            with pytest.raises(InvalidConfig):
                await admin.alter_topic("administered", set_configs={"retention.ms": "soon"})
            await admin.alter_topic("administered", set_configs={"segment.ms": "9"}, delete_configs=["retention.ms"])

            description = await admin.describe_topic("administered")
            changed = {config.name: config.value for config in description.configs if not config.is_default}
            assert changed == {"segment.ms": "9"}
            assert [partition.partition for partition in description.partitions] == [0, 1, 2]
            await admin.delete_topic("administered")
            with pytest.raises(NotFound):
                await admin.describe_topic("administered")
            with pytest.raises(NotFound):
                await admin.delete_topic("administered")

    asyncio.run(scenario())


def test_deleted_records_are_gone_and_the_others_keep_their_offsets(node: Node) -> None:
    async def scenario() -> tuple[dict[int, int], list[ConsumedRecord]]:
        async with Cluster.connect(node.bootstrap) as cluster:
            admin = Admin(cluster)
            await admin.create_topic("trimmed", partition_count=1)
            async with Producer(cluster) as producer:
                for number in range(10):
                    await producer.send("trimmed", value=b"%d" % number)
            starts = await admin.delete_records("trimmed", {0: 4})
            with pytest.raises(OffsetOutOfRange):
                await Consumer(cluster, "trimmed", {0: 0}).poll()
            return starts, await read_all(cluster, "trimmed")

    starts, records = asyncio.run(scenario())

    assert starts == {0: 4}
    assert [(record.offset, record.value) for record in records] == [(n, b"%d" % n) for n in range(4, 10)]


def test_offsets_are_found_by_time(node: Node) -> None:
    async def scenario() -> list[dict[int, int | None]]:
        async with Cluster.connect(node.bootstrap) as cluster:
            admin = Admin(cluster)
            await admin.create_topic("timed", partition_count=1)
            async with Producer(cluster) as producer:
                for stamp in (1000, 2000, 3000):
                    await producer.send("timed", value=b"", timestamp_ms=stamp)
            return [await admin.offsets_at("timed", [0], stamp) for stamp in (0, 2000, 2001, 3001)]

    assert asyncio.run(scenario()) == [{0: 0}, {0: 1}, {0: 2}, {0: None}]
