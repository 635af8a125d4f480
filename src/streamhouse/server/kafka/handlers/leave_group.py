"""LeaveGroup (13), versions 0 to 5: one member, or since version 3 several, of either protocol."""

from __future__ import annotations

from streamhouse.core.groups.classic_messages import LeavingMember
from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import coordinator_code, group_code, is_group_id
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import leave_group as messages
from streamhouse.wire.kafka.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_BATCHED_SINCE = 3


async def handle(context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if not is_group_id(request.group_id):
        return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    is_batched = context.version >= _BATCHED_SINCE
    leaving = (
        [LeavingMember(member_id=item.member_id, instance_id=item.group_instance_id) for item in request.members]
        if is_batched
        else [LeavingMember(member_id=request.member_id)]
    )
    try:
        reply = await context.broker.groups.leave(request.group_id, leaving)
    except StreamHouseError as problem:
        return LeaveGroupResponse(error_code=coordinator_code(problem))
    error = reply.error
    if not is_batched and error is None and reply.members:
        error = reply.members[0].error
    return LeaveGroupResponse(
        error_code=group_code(error),
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                error_code=group_code(member.error),
            )
            for member in reply.members
        ],
    )
