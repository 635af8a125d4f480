"""CreateTopics (19), versions 2 to 7: topics with configs, or only a check of them.

The replication factor is accepted and ignored: durability is the object store's, and a partition has one leader."""

from __future__ import annotations

import asyncio
from collections import Counter

from streamhouse.model.errors import InvalidInput, InvalidPartitions, StreamHouseError
from streamhouse.model.topic import MAX_PARTITIONS, Topic
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
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
_DEFAULT_COUNT = -1


async def handle(context: Context, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times_named = Counter(topic.name for topic in request.topics)

    async def create(asked: CreatableTopic) -> CreatableTopicResult:
        try:
            if times_named[asked.name] > 1:
                raise InvalidInput(f"topic {asked.name!r} is named more than once")
            topic = await context.broker.topics.create(
                asked.name,
                _partition_count(asked),
                {config.name: config.value for config in asked.configs},
                validate_only=request.validate_only,
            )
        except StreamHouseError as problem:
            return CreatableTopicResult(name=asked.name, error_code=code_of(problem), error_message=str(problem))
        return _created(context, topic)

    # At once, for then one look at the cluster finds the leaders of all of them.
    return CreateTopicsResponse(topics=await asyncio.gather(*map(create, request.topics)))


def _partition_count(asked: CreatableTopic) -> int | None:
    if asked.assignments:
        indexes = sorted(assignment.partition_index for assignment in asked.assignments)
        if indexes != list(range(len(indexes))):
            raise InvalidPartitions("assignments must name partitions 0, 1, 2 and so on, once each")
        return _checked(len(indexes))
    if asked.num_partitions == _DEFAULT_COUNT:
        return None
    return _checked(asked.num_partitions)


def _checked(count: int) -> int:
    if not 1 <= count <= MAX_PARTITIONS:
        raise InvalidPartitions(f"{count} is not a number of partitions", hint=f"use 1 to {MAX_PARTITIONS}")
    return count


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
            for name, value in context.broker.topics.config_of(topic).items()
        ],
    )
