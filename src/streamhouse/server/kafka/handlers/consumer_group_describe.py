"""ConsumerGroupDescribe (69), versions 0 and 1: the members of groups of the newer protocol."""

from __future__ import annotations

from uuid import UUID

from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_snapshot import ConsumerGroupDescription
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import not_of_kind
from streamhouse.server.kafka.operations import GROUP_OPERATIONS, NOT_ASKED_FOR
from streamhouse.wire.kafka.messages import consumer_group_describe as messages
from streamhouse.wire.kafka.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_CLASSIC_MEMBER = 0
_CONSUMER_MEMBER = 1


async def handle(context: Context, request: ConsumerGroupDescribeRequest) -> ConsumerGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR
    return ConsumerGroupDescribeResponse(
        groups=[_describe(context, group_id, operations) for group_id in dict.fromkeys(request.group_ids)]
    )


def _describe(context: Context, group_id: str, operations: int) -> DescribedGroup:
    found = context.broker.groups.describe(group_id)
    if not isinstance(found, ConsumerGroupDescription):
        code, why = not_of_kind("consumer", group_id, found)
        return DescribedGroup(error_code=code, error_message=why, group_id=group_id)
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state.value,
        authorized_operations=operations,
        group_epoch=found.group_epoch,
        assignment_epoch=found.assignment_epoch,
        assignor_name=found.assignor,
        members=[
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                rack_id=member.rack_id,
                member_epoch=member.member_epoch,
                client_id=member.client_id,
                client_host=member.client_host,
                subscribed_topic_names=list(member.subscribed_topic_names),
                subscribed_topic_regex=member.subscribed_topic_regex,
                assignment=_assignment(context, member.assigned),
                target_assignment=_assignment(context, member.target),
                member_type=_CLASSIC_MEMBER if member.is_classic else _CONSUMER_MEMBER,
            )
            for member in found.members
        ],
    )


def _assignment(context: Context, partitions: tuple[TopicIdPartition, ...]) -> Assignment:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in partitions:
        by_topic.setdefault(topic_id, []).append(index)
    named = [(topic_id, context.broker.topics.find_id(topic_id), indexes) for topic_id, indexes in by_topic.items()]
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=topic.name if topic else "", partitions=indexes)
            for topic_id, topic, indexes in named
        ]
    )
