"""OffsetDelete (47), version 0: forgets committed offsets of a group that does not use them."""

from __future__ import annotations

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.outcome import GroupError
from streamhouse.model.errors import NotFound, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.group_errors import coordinator_code, group_code
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import offset_delete as messages
from streamhouse.wire.kafka.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    refusal = _refusal(context, request.group_id)
    if refusal is not None:
        return OffsetDeleteResponse(error_code=group_code(refusal))
    places = {
        (topic.name, item.partition_index): context.broker.topics.find(topic.name)
        for topic in request.topics
        for item in topic.partitions
    }
    partitions = {
        place: TopicPartition(topic.topic_id, place[1]) for place, topic in places.items() if topic is not None
    }
    try:
        outcomes = await context.broker.groups.delete_offsets(request.group_id, list(partitions.values()))
    except NotFound:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    except StreamHouseError as problem:
        return OffsetDeleteResponse(error_code=coordinator_code(problem))

    def code(place: tuple[str, int]) -> ErrorCode:
        if place not in partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        problem = outcomes[partitions[place]]
        return ErrorCode.NONE if problem is None else code_of(problem)

    return OffsetDeleteResponse(
        topics=[
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(
                        partition_index=item.partition_index, error_code=code((topic.name, item.partition_index))
                    )
                    for item in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _refusal(context: Context, group_id: str) -> GroupError | None:
    group = context.broker.groups.find(group_id)
    if group is None:
        return GroupError.GROUP_ID_NOT_FOUND
    if isinstance(group.machine, ClassicGroup):
        return group.machine.check_offset_delete()
    return GroupError.NON_EMPTY_GROUP if group.has_members else None
