"""SyncGroup (14), versions 0 to 5: the leader gives the assignment, everybody gets their part of it."""

from __future__ import annotations

from streamhouse.core.groups.classic_messages import MemberClaim, SyncRequest
from streamhouse.core.groups.outcome import GroupError
from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import coordinator_code, group_code, is_group_id
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import sync_group as messages
from streamhouse.wire.kafka.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: SyncGroupRequest) -> SyncGroupResponse:
    if not is_group_id(request.group_id):
        return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    try:
        reply = await context.broker.groups.sync(
            request.group_id,
            SyncRequest(
                claim=MemberClaim(
                    member_id=request.member_id,
                    generation=request.generation_id,
                    instance_id=request.group_instance_id,
                ),
                protocol_type=request.protocol_type,
                protocol_name=request.protocol_name,
                assignments={item.member_id: bytes(item.assignment) for item in request.assignments},
            ),
        )
    except StreamHouseError as problem:
        return SyncGroupResponse(error_code=coordinator_code(problem))
    if reply.error is GroupError.COORDINATOR_LOAD_IN_PROGRESS:
        # As Kafka does, for clients know no such answer here and would give up: they join again instead.
        return SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return SyncGroupResponse(
        error_code=group_code(reply.error),
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name,
        assignment=reply.assignment,
    )
