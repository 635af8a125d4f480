"""OffsetDelete (47), version 0: forgets committed offsets, except of topics that the group's members subscribe to."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.migration import MAX_NAMED_TOGETHER
from streamhouse.core.groups.outcome import GroupError
from streamhouse.groups.snapshot import Machine
from streamhouse.model.errors import NotFound, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol
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
_EMBEDDED = KafkaEmbeddedProtocol()


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    asked = _asked(context, request)
    try:
        outcome = await context.broker.groups.delete_offsets(request.group_id, partial(_unused, context, asked))
    except NotFound:
        return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    except StreamHouseError as problem:
        return OffsetDeleteResponse(error_code=coordinator_code(problem))
    if isinstance(outcome, GroupError):
        return OffsetDeleteResponse(error_code=group_code(outcome))

    def code(place: tuple[str, int]) -> ErrorCode:
        if place not in asked:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if asked[place] not in outcome:
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        problem = outcome[asked[place]]
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


def _asked(context: Context, request: OffsetDeleteRequest) -> dict[tuple[str, int], TopicPartition]:
    """The partitions of topics that exist, by how the request names them."""
    found = [(topic, context.broker.topics.find(topic.name)) for topic in request.topics]
    return {
        (topic.name, item.partition_index): TopicPartition(known.topic_id, item.partition_index)
        for topic, known in found
        if known is not None
        for item in topic.partitions
    }


def _unused(
    context: Context, asked: dict[tuple[str, int], TopicPartition], machine: Machine | None
) -> GroupError | list[TopicPartition]:
    if isinstance(machine, ClassicGroup):
        refusal = machine.check_offset_delete()
        if refusal is not None:
            return refusal
    subscribed = _read_by_classic(machine) if isinstance(machine, ClassicGroup) else set(_read_by(context, machine))
    if subscribed is None:
        return []
    return [partition for (topic, _), partition in asked.items() if topic not in subscribed]


def _read_by_classic(group: ClassicGroup) -> set[str] | None:
    """The topics that members read; None, which may be all, if what they say cannot be read, or is too much to read."""
    subscribed: set[str] = set()
    room = MAX_NAMED_TOGETHER
    for member in group.stored().members:
        for _, metadata in member.protocols:
            subscription = _EMBEDDED.read_subscription(metadata)
            room -= 0 if subscription is None else len(subscription.topics) + len(subscription.owned)
            if subscription is None or room < 0:
                return None
            subscribed.update(subscription.topics)
    return subscribed


def _read_by(context: Context, machine: Machine | None) -> Iterator[str]:
    """The same of a consumer group."""
    if isinstance(machine, ConsumerGroup):
        for described in machine.describe().members:
            yield from described.subscribed_topic_names
            # What a pattern has found is what is assigned by it.
            for topic_id, _ in (*described.assigned, *described.target):
                topic = context.broker.topics.find_id(topic_id)
                if topic is not None:
                    yield topic.name
