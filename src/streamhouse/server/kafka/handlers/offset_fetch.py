"""OffsetFetch (9), versions 1 to 10: what was committed; several groups at once since version 8."""

from __future__ import annotations

from uuid import UUID

from streamhouse.core.groups.outcome import GroupError
from streamhouse.metadata.groups import CommittedOffset
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.distinct import distinct
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.group_errors import coordinator_code, group_code
from streamhouse.server.kafka.partitions import find_topic
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import offset_fetch as messages
from streamhouse.wire.kafka.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_GROUPS_SINCE = 8
_GROUP_ERROR_SINCE = 2
_NOTHING = CommittedOffset(offset=-1, leader_epoch=-1, metadata="")


async def handle(context: Context, request: OffsetFetchRequest) -> OffsetFetchResponse:
    if context.version >= _GROUPS_SINCE:
        groups = distinct(request.groups, lambda group: group.group_id)
        return OffsetFetchResponse(groups=[await _group(context, group) for group in groups])
    topics = request.topics
    group = await _group(
        context,
        OffsetFetchRequestGroup(
            group_id=request.group_id,
            topics=None
            if topics is None
            else [
                OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics
            ],
        ),
    )
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


async def _group(context: Context, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    try:
        committed = await context.broker.groups.committed(asked.group_id, asked.member_id, asked.member_epoch)
    except StreamHouseError as problem:
        return _refused(context, asked, coordinator_code(problem))
    if isinstance(committed, GroupError):
        return _refused(context, asked, group_code(committed))
    topics = _all_committed(context, committed) if asked.topics is None else _named_once(asked.topics)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id, topics=[_topic(context, topic, committed) for topic in topics]
    )


def _named_once(topics: list[OffsetFetchRequestTopics]) -> list[OffsetFetchRequestTopics]:
    """Four bytes name a partition whose commit may have a thousand times as many of metadata."""
    partitions: dict[tuple[str, UUID], dict[int, None]] = {}
    for topic in topics:
        partitions.setdefault((topic.name, topic.topic_id), {}).update(dict.fromkeys(topic.partition_indexes))
    return [
        OffsetFetchRequestTopics(name=name, topic_id=topic_id, partition_indexes=list(indexes))
        for (name, topic_id), indexes in partitions.items()
    ]


def _refused(context: Context, asked: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    """Said of the group or, where the version has no place for that, of every partition."""
    if context.version >= _GROUP_ERROR_SINCE:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=code)
    return OffsetFetchResponseGroup(
        group_id=asked.group_id,
        topics=[
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartitions(
                        partition_index=index, committed_offset=-1, metadata="", error_code=code
                    )
                    for index in topic.partition_indexes
                ],
            )
            for topic in asked.topics or ()
        ],
    )


def _all_committed(
    context: Context, committed: dict[TopicPartition, CommittedOffset]
) -> list[OffsetFetchRequestTopics]:
    by_topic: dict[UUID, list[int]] = {}
    for partition in sorted(committed):
        by_topic.setdefault(partition.topic_id, []).append(partition.partition)
    topics = [(context.broker.topics.find_id(topic_id), partitions) for topic_id, partitions in by_topic.items()]
    return [
        OffsetFetchRequestTopics(name=topic.name, topic_id=topic.topic_id, partition_indexes=partitions)
        for topic, partitions in topics
        if topic is not None
    ]


def _topic(
    context: Context, asked: OffsetFetchRequestTopics, committed: dict[TopicPartition, CommittedOffset]
) -> OffsetFetchResponseTopics:
    code = ErrorCode.NONE
    try:
        topic = find_topic(context.broker, asked.name, asked.topic_id)
    except StreamHouseError as problem:
        topic, code = None, code_of(problem)
    partitions = []
    for index in asked.partition_indexes:
        found = committed.get(TopicPartition(topic.topic_id, index), _NOTHING) if topic is not None else _NOTHING
        partitions.append(
            OffsetFetchResponsePartitions(
                partition_index=index,
                committed_offset=found.offset,
                committed_leader_epoch=found.leader_epoch,
                metadata=found.metadata,
                error_code=code,
            )
        )
    return OffsetFetchResponseTopics(name=asked.name, topic_id=asked.topic_id, partitions=partitions)
