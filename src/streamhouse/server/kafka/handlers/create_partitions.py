"""CreatePartitions (37), versions 0 to 3: adds partitions to topics, or only checks that it could.

A topic whose config streamhouse.partitions.fixed is true answers POLICY_VIOLATION. Assignments of replicas are checked
and then left aside, as with CreateTopics."""

from __future__ import annotations

import asyncio
from collections import Counter

from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.server.kafka.assignments import check_assignments
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.refusals import InvalidReplicaAssignment
from streamhouse.wire.kafka.messages import create_partitions as messages
from streamhouse.wire.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    times_named = Counter(asked.name for asked in request.topics)
    trouble = await _look(context)

    async def grow(asked: CreatePartitionsTopic) -> CreatePartitionsTopicResult:
        try:
            if times_named[asked.name] > 1:
                raise InvalidInput(f"topic {asked.name[:300]!r} is named more than once")
            if trouble is not None:
                raise trouble
            topic = context.broker.topics.get(asked.name)
            _check_assignments(context, topic, asked)
            await context.broker.topics.grow(
                topic, asked.count, validate_only=request.validate_only, wait_ms=request.timeout_ms
            )
        except StreamHouseError as problem:
            return CreatePartitionsTopicResult(name=asked.name, error_code=code_of(problem), error_message=str(problem))
        return CreatePartitionsTopicResult(name=asked.name)

    # Each name once, as Kafka answers. At once, for then one look at the cluster finds the leaders of all of them.
    each = {asked.name: asked for asked in request.topics}.values()
    return CreatePartitionsResponse(results=await asyncio.gather(*map(grow, each)))


async def _look(context: Context) -> StreamHouseError | None:
    """How many partitions there are, as the store has it now: another node may have added some a moment ago."""
    try:
        await context.broker.topics.refresh()
    except StreamHouseError as problem:
        return problem
    return None


def _check_assignments(context: Context, topic: Topic, asked: CreatePartitionsTopic) -> None:
    added = asked.count - topic.partition_count
    if asked.assignments is None or added <= 0:
        return
    if len(asked.assignments) != added:
        raise InvalidReplicaAssignment(
            f"{added} partition(s) are to be added, and there are assignments for {len(asked.assignments)}"
        )
    check_assignments((assignment.broker_ids for assignment in asked.assignments), context.broker.nodes)
