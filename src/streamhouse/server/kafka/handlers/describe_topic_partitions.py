"""DescribeTopicPartitions (75), version 0: Metadata's newer sister for admin tools, a page at a time."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.operations import TOPIC_OPERATIONS
from streamhouse.server.kafka.partitions import LeaderId, TopicLookup, awaited_nodes, leader_of
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_topic_partitions as messages
from streamhouse.wire.kafka.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_LARGEST_PAGE = 2000


async def handle(context: Context, request: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    names = sorted({topic.name for topic in request.topics} or {topic.name for topic in context.broker.topics})
    lookup = TopicLookup(context.broker)
    cursor = request.cursor
    room = max(1, min(request.response_partition_limit, _LARGEST_PAGE))
    answers: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if cursor is not None and name < cursor.topic_name:
            continue
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if room == 0:
            return DescribeTopicPartitionsResponse(
                topics=answers, next_cursor=Cursor(topic_name=name, partition_index=first)
            )
        answer, total = await _page(context, lookup, name, first, room)
        answers.append(answer)
        room -= len(answer.partitions)
        reached = first + len(answer.partitions)
        if reached < total:
            return DescribeTopicPartitionsResponse(
                topics=answers, next_cursor=Cursor(topic_name=name, partition_index=reached)
            )
    return DescribeTopicPartitionsResponse(topics=answers)


async def _page(
    context: Context, lookup: TopicLookup, name: str, first: int, room: int
) -> tuple[DescribeTopicPartitionsResponseTopic, int]:
    """One topic's partitions from `first` on, as many as fit, and how many it has."""
    try:
        topic = await lookup.get(name)
    except StreamHouseError as problem:
        return DescribeTopicPartitionsResponseTopic(error_code=code_of(problem), name=name), 0
    partitions = [
        _describe(index, leader_of(context.broker, topic, index), awaited_nodes(context.broker, topic, index))
        for index in range(first, min(first + room, topic.partition_count))
    ]
    answer = DescribeTopicPartitionsResponseTopic(
        name=name, topic_id=topic.topic_id, partitions=partitions, topic_authorized_operations=TOPIC_OPERATIONS
    )
    return answer, topic.partition_count


def _describe(index: int, leader: LeaderId, awaited: list[int]) -> DescribeTopicPartitionsResponsePartition:
    has_leader = leader.node_id >= 0
    replicas = [leader.node_id] if has_leader else awaited
    return DescribeTopicPartitionsResponsePartition(
        error_code=ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE,
        partition_index=index,
        leader_id=leader.node_id,
        leader_epoch=leader.epoch,
        replica_nodes=replicas,
        isr_nodes=replicas,
        # Kafka's own admin client takes these for lists, although they may be null by the protocol.
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=[] if has_leader else awaited,
    )
