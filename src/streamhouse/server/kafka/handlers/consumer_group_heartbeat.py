"""ConsumerGroupHeartbeat (68), versions 0 and 1: the newer protocol (KIP-848), with assignment on this side.

The first such member of a group of classic consumers makes it a group of this protocol, with them in it, unless
`group_consumer_migration_policy` says otherwise: then, and if they are no consumers, it gets GROUP_ID_NOT_FOUND with a
message that says to stop them first. Topic patterns are written in RE2's syntax."""

from __future__ import annotations

from uuid import UUID

from streamhouse.core.groups.consumer_heartbeat import HeartbeatRequest, TopicIdPartition
from streamhouse.core.groups.outcome import GroupError, Refusal
from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.entropy import new_uuid
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import coordinator_code, group_code, is_group_id
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import consumer_group_heartbeat as messages
from streamhouse.wire.kafka.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    if not is_group_id(request.group_id):
        return _refused(ErrorCode.INVALID_GROUP_ID)
    names = request.subscribed_topic_names
    try:
        reply = await context.broker.groups.consumer_heartbeat(
            request.group_id,
            HeartbeatRequest(
                member_id=request.member_id or str(new_uuid()),
                member_epoch=request.member_epoch,
                instance_id=request.instance_id,
                rack_id=request.rack_id,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                subscribed_topic_names=None if names is None else tuple(names),
                subscribed_topic_regex=request.subscribed_topic_regex,
                server_assignor=request.server_assignor,
                owned=_owned(request.topic_partitions),
                client_id=context.header.client_id or "",
                client_host=context.client_host,
            ),
        )
    except StreamHouseError as problem:
        return _refused(coordinator_code(problem), str(problem))
    if isinstance(reply, Refusal):
        return _refused(group_code(reply.error), reply.reason)
    if isinstance(reply, GroupError):
        return _refused(group_code(reply))
    return ConsumerGroupHeartbeatResponse(
        member_id=reply.member_id,
        member_epoch=reply.member_epoch,
        heartbeat_interval_ms=reply.heartbeat_interval_ms,
        assignment=None if reply.assignment is None else Assignment(topic_partitions=_by_topic(reply.assignment)),
    )


def _owned(topics: list[TopicPartitions] | None) -> frozenset[TopicIdPartition] | None:
    if topics is None:
        return None
    return frozenset((topic.topic_id, index) for topic in topics for index in topic.partitions)


def _by_topic(partitions: tuple[TopicIdPartition, ...]) -> list[TopicPartitions]:
    by_topic: dict[UUID, list[int]] = {}
    for topic_id, index in partitions:
        by_topic.setdefault(topic_id, []).append(index)
    return [TopicPartitions(topic_id=topic_id, partitions=indexes) for topic_id, indexes in by_topic.items()]


def _refused(code: ErrorCode, message: str | None = None) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=code, error_message=message or code.meaning)
