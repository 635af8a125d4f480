"""Fetches from a node that does not lead (KIP-392): sent to one in the reader's zone, served there from segments."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from log_parts.batches import real
from log_parts.engines import FaultyMetadata
from log_parts.waiting import until
from streamhouse.app.node import Node
from streamhouse.broker.produce import produce
from streamhouse.format.records import decode_records
from streamhouse.metadata.sqlite.database import Database
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.objects.memory import MemoryStore
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.handlers import fetch as handler
from streamhouse.server.kafka.handlers import metadata as metadata_handler
from streamhouse.testing.clock import MovableClock
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import RequestHeader
from streamhouse.wire.kafka.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from streamhouse.wire.kafka.messages.metadata import MetadataRequest

VERSION = 17
LEADER, FOLLOWER = 1, 2


class TwoNodes:
    """`east` leads every partition of `orders`, `west` none; what is uploaded is no longer in memory."""

    def __init__(self, east: Node, west: Node, metadata: FaultyMetadata) -> None:
        self.east = east
        self.west = west
        self.metadata = metadata

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.east.broker.topics.get("orders").topic_id, 0)

    @property
    def epoch(self) -> int:
        return self.east.broker.topics.leader(self.east.broker.topics.get("orders"), 0).epoch

    async def produce(self, *values: bytes) -> None:
        """A segment of its own."""
        leader = self.east.broker.topics.leader(self.east.broker.topics.get("orders"), 0)
        await produce(self.east.broker, leader, real(*values), timeout_ms=10_000)
        await self.east.engine.flush()

    async def produce_to_wal(self, *values: bytes) -> None:
        leader = self.east.broker.topics.leader(self.east.broker.topics.get("orders"), 0)
        await produce(self.east.broker, leader, real(*values), timeout_ms=10_000)


def context(node: Node, version: int = VERSION) -> Context:
    header = RequestHeader(api_key=1, api_version=version, correlation_id=1, client_id="test", body_pos=0)
    return Context(node.broker, node.kafka.endpoint, header, 2**24, "127.0.0.1")


async def answer(
    node: Node, topic_id: UUID, offset: int, *, epoch: int = -1, rack: str = "", max_wait_ms: int = 0
) -> FetchResponse:
    """As a session does it: what is in memory at once, the rest in a task."""
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20, current_leader_epoch=epoch)
    request = FetchRequest(
        max_bytes=2**20,
        min_bytes=1,
        max_wait_ms=max_wait_ms,
        rack_id=rack,
        topics=[FetchTopic(topic_id=topic_id, partitions=[asked])],
    )
    return handler.answer_now(context(node), request) or await handler.handle(context(node), request)


async def fetch(node: Node, topic_id: UUID, offset: int, **options: Any) -> PartitionData:
    return (await answer(node, topic_id, offset, **options)).responses[0].partitions[0]


def values(data: PartitionData) -> list[bytes | None]:
    assert data.records is not None
    return [record.value for record in decode_records(b"".join(data.records))]


@asynccontextmanager
async def two_nodes(**settings: Any) -> AsyncIterator[TwoNodes]:
    clock = MovableClock()
    database = Database(":memory:", clock)
    await database.open()
    metadata = FaultyMetadata(database)
    objects = MemoryStore(clock)

    def node(zone: str, node_id: int, group: str) -> Node:
        given = {"kafka_port": 0, "grpc_port": 0, "agent_id": zone, "zone": zone, "node_id": node_id, "tail_bytes": 0}
        return Node(
            Settings(**(given | {"agent_group": group} | settings)),
            clock=clock,
            metadata=metadata,
            objects=objects,
            durable=False,
        )

    east, west = node("east", LEADER, "default"), node("west", FOLLOWER, "readers")
    await east.start()
    await west.start()
    try:
        await east.broker.topics.create("orders", 1, {})
        await until(lambda: west.broker.topics.find("orders") is not None, "the other node knows the topic")
        found = TwoNodes(east, west, metadata)
        await until(lambda: west.broker.nodes.leader_of(found.partition) is not None, "and its leader")
        yield found
    finally:
        await west.kill()
        await east.kill()
        await metadata.close()


async def test_the_leader_names_a_node_of_the_readers_zone_for_what_is_in_segments() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"old")
        await nodes.produce(b"new")

        data = await fetch(nodes.east, nodes.partition.topic_id, 0, epoch=nodes.epoch, rack="west")

        assert (data.error_code, data.preferred_read_replica) == (ErrorCode.NONE, FOLLOWER)
        assert not data.records
        assert (data.high_watermark, data.log_start_offset) == (2, 0)


async def test_a_reader_without_a_zone_in_the_leaders_or_in_nobodys_is_served_by_the_leader() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"value")

        for rack in ("", "east", "north"):
            data = await fetch(nodes.east, nodes.partition.topic_id, 0, epoch=nodes.epoch, rack=rack)
            assert data.preferred_read_replica == -1
            assert values(data) == [b"value"]


async def test_what_is_not_in_a_segment_yet_is_served_by_the_leader_whatever_the_zone() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"old")
        await nodes.produce_to_wal(b"new")

        data = await fetch(nodes.east, nodes.partition.topic_id, 1, epoch=nodes.epoch, rack="west")

        assert data.preferred_read_replica == -1
        assert values(data) == [b"new"]


async def test_the_other_node_serves_segments_to_who_knows_the_epoch() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"one", b"two")
        await nodes.produce(b"three")

        data = await fetch(nodes.west, nodes.partition.topic_id, 1, epoch=nodes.epoch, rack="west")

        assert data.error_code == ErrorCode.NONE
        # Where its segments end is not the end of the log.
        assert (data.high_watermark, data.last_stable_offset, data.log_start_offset) == (-1, -1, 0)
        assert values(data)[-2:] == [b"two", b"three"]


@pytest.mark.parametrize("rack", ["west", ""])
async def test_where_the_segments_end_the_reader_is_sent_back_to_the_leader(rack: str) -> None:
    """And not told that its offset is out of range. While librdkafka moves a partition to its new leader it may ask the
    old one once more, with the epoch of the new, and take the answer for the leader's: it would begin anew, from the
    start or the end of the log."""
    async with two_nodes() as nodes:
        await nodes.produce(b"old")
        await nodes.produce_to_wal(b"new")

        data = await fetch(nodes.west, nodes.partition.topic_id, 1, epoch=nodes.epoch, rack=rack, max_wait_ms=60_000)

        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (LEADER, nodes.epoch)


async def test_a_leader_whose_lease_ran_out_does_not_tell_its_end_even_as_it_refuses() -> None:
    """librdkafka looks at the high watermark before the error: a reader that stands on it would be told EOF, and miss
    what the next leader has acknowledged."""
    async with two_nodes(durability="object") as nodes:
        await nodes.produce(b"old")
        nodes.east.engine.leadership.expire()

        data = await fetch(nodes.east, nodes.partition.topic_id, 1, epoch=nodes.epoch)

        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (data.high_watermark, data.last_stable_offset) == (-1, -1)


async def test_a_reader_of_the_nodes_own_zone_is_served_although_it_knows_no_epoch() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"value")

        assert values(await fetch(nodes.west, nodes.partition.topic_id, 0, rack="west")) == [b"value"]
        elsewhere = await fetch(nodes.west, nodes.partition.topic_id, 0, rack="north")
        assert elsewhere.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_reader_that_may_take_the_node_for_the_leader_is_not_told_that_its_offset_is_out_of_range() -> None:
    """It would begin anew, from the start or the end of the log."""
    async with two_nodes() as nodes:
        await nodes.produce(b"old")
        await nodes.produce_to_wal(b"new")

        data = await fetch(nodes.west, nodes.partition.topic_id, 1, rack="west")

        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (LEADER, nodes.epoch)


async def test_segments_that_came_since_the_last_fetch_are_served() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"one")
        assert values(await fetch(nodes.west, nodes.partition.topic_id, 0, epoch=nodes.epoch)) == [b"one"]
        await nodes.produce(b"two")

        assert values(await fetch(nodes.west, nodes.partition.topic_id, 1, epoch=nodes.epoch)) == [b"two"]


async def test_below_the_log_start_the_other_node_says_out_of_range_too() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"one")
        await nodes.produce(b"two")
        leader = nodes.east.broker.topics.leader(nodes.east.broker.topics.get("orders"), 0)
        await nodes.east.broker.delete_records(leader, 1)

        data = await fetch(nodes.west, nodes.partition.topic_id, 0, epoch=nodes.epoch)

        assert data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        assert data.log_start_offset == 1


async def test_who_does_not_know_the_epoch_is_told_who_leads_and_where_that_is() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"value")

        for epoch in (-1, nodes.epoch - 1, nodes.epoch + 1):
            response = await answer(nodes.west, nodes.partition.topic_id, 0, epoch=epoch)
            (data,) = response.responses[0].partitions
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (LEADER, nodes.epoch)
            endpoint = next(item for item in response.node_endpoints if item.node_id == LEADER)
            assert (endpoint.host, endpoint.port) == tuple(nodes.east.kafka.endpoint)
            assert endpoint.rack == "east"


async def test_partitions_led_here_and_elsewhere_are_answered_together() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"far")
        topics = nodes.west.broker.topics
        near = await topics.create("near", 1, {"streamhouse.agent.group": "readers"})
        await produce(nodes.west.broker, topics.leader(near, 0), real(b"near"), timeout_ms=10_000)
        asked = [
            FetchTopic(
                topic_id=topic_id,
                partitions=[FetchPartition(partition=0, partition_max_bytes=2**20, current_leader_epoch=1)],
            )
            for topic_id in (nodes.partition.topic_id, near.topic_id)
        ]
        request = FetchRequest(max_bytes=2**20, max_wait_ms=500, min_bytes=1, topics=asked)

        response = await handler.handle(context(nodes.west), request)

        assert [values(item.partitions[0]) for item in response.responses] == [[b"far"], [b"near"]]


async def test_a_store_that_is_away_fails_the_partition_and_not_the_request() -> None:
    async with two_nodes() as nodes:
        await nodes.produce(b"value")
        nodes.metadata.fail("load_partitions")

        data = await fetch(nodes.west, nodes.partition.topic_id, 0, epoch=nodes.epoch)

        assert data.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert values(await fetch(nodes.west, nodes.partition.topic_id, 0, epoch=nodes.epoch)) == [b"value"]


async def test_a_reader_that_waits_by_id_for_a_topic_that_is_deleted_gets_an_answer() -> None:
    async with two_nodes() as nodes:
        topic = nodes.east.broker.topics.get("orders")
        waiting = asyncio.ensure_future(fetch(nodes.east, topic.topic_id, 0, epoch=nodes.epoch, max_wait_ms=60_000))
        leader = nodes.east.broker.topics.leader(topic, 0)
        await until(lambda: leader._watchers, "the reader waits")

        await nodes.east.broker.topics.delete(topic)

        assert (await waiting).error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_ID)


async def test_metadata_names_all_nodes_and_leaders_on_every_node() -> None:
    async with two_nodes() as nodes:
        for node in (nodes.east, nodes.west):
            found = await metadata_handler.handle(context(node, 12), MetadataRequest(topics=None))

            assert [(broker.node_id, broker.rack) for broker in found.brokers] == [(LEADER, "east"), (FOLLOWER, "west")]
            (partition,) = found.topics[0].partitions
            assert (partition.leader_id, partition.leader_epoch) == (LEADER, nodes.epoch)
