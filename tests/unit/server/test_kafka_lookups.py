"""Topics that another node has just created, and a metadata store that is away: what a client hears of either."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import pytest

from log_parts.engines import FaultyMetadata
from streamhouse.app.node import Node
from streamhouse.metadata.sqlite.database import Database
from streamhouse.model.settings import Settings
from streamhouse.objects.memory import MemoryStore
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.handlers import (
    alter_configs,
    delete_topics,
    describe_configs,
    describe_topic_partitions,
    elect_leaders,
    incremental_alter_configs,
    init_producer_id,
    metadata,
)
from streamhouse.testing.clock import MovableClock
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.frame import RequestHeader
from streamhouse.wire.kafka.messages import alter_configs as alter
from streamhouse.wire.kafka.messages import delete_topics as delete
from streamhouse.wire.kafka.messages import describe_configs as describe
from streamhouse.wire.kafka.messages import describe_topic_partitions as pages
from streamhouse.wire.kafka.messages import elect_leaders as elections
from streamhouse.wire.kafka.messages import incremental_alter_configs as incremental
from streamhouse.wire.kafka.messages import init_producer_id as producer_ids
from streamhouse.wire.kafka.messages import metadata as topics

TOPIC = 2
MANY = [f"never-was-{number}" for number in range(50)]


class Running(NamedTuple):
    node: Node
    store: FaultyMetadata

    async def created_elsewhere(self, name: str) -> UUID:
        """In the store, where this node hears of it when it looks."""
        return (await self.store.create_topic(name, uuid4(), 1, {})).topic_id

    async def ask(self, handler: ModuleType, request: Any) -> Any:
        header = RequestHeader(handler.API.key, handler.API.max_version, 1, "test", 0)
        context = Context(self.node.broker, self.node.kafka.endpoint, header, 2**24, "127.0.0.1")
        return await handler.handle(context, request)


@asynccontextmanager
async def running() -> AsyncIterator[Running]:
    clock = MovableClock()
    database = Database(":memory:", clock)
    await database.open()
    store = FaultyMetadata(database)
    node = Node(
        Settings(kafka_port=0, objects="memory:", auto_create_topics=False),
        clock=clock,
        metadata=store,
        objects=MemoryStore(clock),
        durable=False,
        opens=[],
    )
    await node.start()
    try:
        yield Running(node, store)
    finally:
        await node.kill()
        await store.close()


def described(*names: str) -> Any:
    return describe.DescribeConfigsRequest(
        resources=[
            describe.DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
            for name in names
        ]
    )


def altered(*names: str) -> Any:
    return alter.AlterConfigsRequest(
        resources=[alter.AlterConfigsResource(resource_type=TOPIC, resource_name=name) for name in names]
    )


def changed(*names: str) -> Any:
    return incremental.IncrementalAlterConfigsRequest(
        resources=[incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=name) for name in names]
    )


def deleted(*names: str) -> Any:
    return delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name=name) for name in names])


def paged(*names: str) -> Any:
    return pages.DescribeTopicPartitionsRequest(
        topics=[pages.TopicRequest(name=name) for name in names], response_partition_limit=100
    )


def listed(*names: str) -> Any:
    return topics.MetadataRequest(topics=[topics.MetadataRequestTopic(name=name) for name in names])


EVERY_LOOKUP = pytest.mark.parametrize(
    ("handler", "request_for", "answers"),
    [
        (describe_configs, described, "results"),
        (alter_configs, altered, "responses"),
        (incremental_alter_configs, changed, "responses"),
        (delete_topics, deleted, "responses"),
        (describe_topic_partitions, paged, "topics"),
        (metadata, listed, "topics"),
    ],
)


@EVERY_LOOKUP
async def test_a_topic_that_another_node_has_just_created_is_found(
    handler: ModuleType, request_for: Any, answers: str
) -> None:
    async with running() as here:
        await here.created_elsewhere("orders")

        (answer,) = getattr(await here.ask(handler, request_for("orders")), answers)

        assert answer.error_code == ErrorCode.NONE


async def test_it_is_found_by_its_id_too() -> None:
    async with running() as here:
        topic_id = await here.created_elsewhere("orders")
        asked = topics.MetadataRequest(topics=[topics.MetadataRequestTopic(name=None, topic_id=topic_id)])

        (found,) = (await here.ask(metadata, asked)).topics
        gone_too = await here.created_elsewhere("payments")
        unwanted = delete.DeleteTopicsRequest(topics=[delete.DeleteTopicState(name=None, topic_id=gone_too)])
        (deletion,) = (await here.ask(delete_topics, unwanted)).responses

        assert (found.error_code, found.name) == (ErrorCode.NONE, "orders")
        assert (deletion.error_code, deletion.name) == (ErrorCode.NONE, "payments")


@EVERY_LOOKUP
async def test_many_unknown_topics_are_one_question_to_the_store(
    handler: ModuleType, request_for: Any, answers: str
) -> None:
    async with running() as here:
        before = here.store.calls.count("list_topics")

        found = getattr(await here.ask(handler, request_for(*MANY)), answers)

        assert [answer.error_code for answer in found] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * len(MANY)
        assert here.store.calls.count("list_topics") - before == 1


@EVERY_LOOKUP
async def test_while_the_store_is_away_no_topic_is_said_not_to_be_there(
    handler: ModuleType, request_for: Any, answers: str
) -> None:
    async with running() as here:
        here.store.fail("list_topics")

        found = getattr(await here.ask(handler, request_for(*MANY)), answers)

        codes = {answer.error_code for answer in found}
        assert codes == {ErrorCode.LEADER_NOT_AVAILABLE if handler is metadata else ErrorCode.COORDINATOR_NOT_AVAILABLE}


async def test_a_producer_waits_for_its_id_while_the_store_is_away() -> None:
    async with running() as here:
        asked = producer_ids.InitProducerIdRequest(transactional_id=None)
        here.store.fail("allocate_producer_ids")

        refused, given = [await here.ask(init_producer_id, asked) for _ in range(2)]

        assert refused.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (given.error_code, given.producer_epoch) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize(
    ("election_type", "expected"),
    [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
)
async def test_a_partition_without_a_leader_is_not_said_to_need_none(election_type: int, expected: ErrorCode) -> None:
    async with running() as here:
        here.store.fail("acquire_leases", times=1_000)
        await here.created_elsewhere("orders")
        asked = elections.ElectLeadersRequest(
            election_type=election_type,
            topic_partitions=[elections.TopicPartitions(topic="orders", partitions=[0])],
        )

        (found,) = (await here.ask(elect_leaders, asked)).replica_election_results

        assert [each.error_code for each in found.partition_result] == [expected]
