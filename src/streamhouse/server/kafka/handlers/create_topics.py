"""CreateTopics (19), versions 2 to 7: topics with configs, or only a check of them.

The answer comes when the partitions have leaders, or when the time that the request allows is over, 5 s at most. A
replication factor other than 0 and assignments to brokers that exist are accepted and ignored: durability is the
object store's, and a partition has one leader."""

from __future__ import annotations

import asyncio
from collections import Counter

from streamhouse.broker.nodes import Nodes
from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.names import collision_key, name_collides
from streamhouse.model.topic import Topic, check_partition_count
from streamhouse.server.kafka.assignments import check_assignments
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.refusals import InvalidReplicaAssignment, InvalidReplicationFactor
from streamhouse.wire.kafka.messages import create_topics as messages
from streamhouse.wire.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_DYNAMIC_TOPIC_CONFIG = 1
_DEFAULT_CONFIG = 5
_DEFAULT = -1


async def handle(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times_named = Counter(topic.name for topic in request.topics)
    first_of_key: dict[str | None, str] = {}
    for topic in request.topics:
        first_of_key.setdefault(collision_key(topic.name), topic.name)

    async def create(asked: CreatableTopic) -> CreatableTopicResult:
        try:
            if times_named[asked.name] > 1:
                raise InvalidInput(f"topic {asked.name!r} is named more than once")
            # Before all the rest: who creates a topic only if there is none asks nothing else of one that there is.
            await context.broker.topics.check_is_new(asked.name)
            key = collision_key(asked.name)
            if key is not None and first_of_key[key] != asked.name:
                raise name_collides(asked.name, first_of_key[key])
            topic = await context.broker.topics.create(
                asked.name,
                _partition_count(asked, context.broker.nodes),
                {config.name: config.value for config in asked.configs},
                validate_only=request.validate_only,
                wait_ms=request.timeout_ms,
            )
        except StreamHouseError as problem:
            return CreatableTopicResult(name=asked.name, error_code=code_of(problem), error_message=str(problem))
        return _created(context, topic)

    # At once, for then one look at the cluster finds the leaders of all of them.
    return CreateTopicsResponse(topics=await asyncio.gather(*map(create, request.topics)))


def _partition_count(asked: CreatableTopic, nodes: Nodes) -> int | None:
    if asked.assignments:
        return _assigned_count(asked, nodes)
    if asked.replication_factor < _DEFAULT or asked.replication_factor == 0:
        raise InvalidReplicationFactor(
            f"{asked.replication_factor} is not a replication factor", hint="use 1, or -1 for the default"
        )
    if asked.num_partitions == _DEFAULT:
        return None
    check_partition_count(asked.num_partitions)
    return asked.num_partitions


def _assigned_count(asked: CreatableTopic, nodes: Nodes) -> int:
    if (asked.num_partitions, asked.replication_factor) != (_DEFAULT, _DEFAULT):
        raise InvalidInput("with assignments, the numbers of partitions and of replicas must be -1")
    indexes = sorted(assignment.partition_index for assignment in asked.assignments)
    if indexes != list(range(len(indexes))):
        raise InvalidReplicaAssignment("assignments must name partitions 0, 1, 2 and so on, once each")
    check_assignments((assignment.broker_ids for assignment in asked.assignments), nodes)
    check_partition_count(len(indexes))
    return len(indexes)


def _created(context: Context, topic: Topic) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=topic.name,
        topic_id=topic.topic_id,
        error_message=None,
        num_partitions=topic.partition_count,
        replication_factor=1,
        configs=[
            CreatableTopicConfigs(
                name=name,
                value=value,
                config_source=_DYNAMIC_TOPIC_CONFIG if name in topic.config else _DEFAULT_CONFIG,
            )
            for name, value in context.broker.topics.told_config_of(topic).items()
        ],
    )
