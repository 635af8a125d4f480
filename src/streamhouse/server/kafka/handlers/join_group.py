"""JoinGroup (11), versions 0 to 9: answered when everybody has joined, or the time for it is over."""

from __future__ import annotations

from streamhouse.core.groups.classic_messages import JoinRequest
from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.entropy import new_uuid
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import coordinator_code, group_code, is_group_id
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import join_group as messages
from streamhouse.wire.kafka.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_REQUIRES_MEMBER_ID_SINCE = 4
_NULL_PROTOCOL_SINCE = 7
_SKIPS_ASSIGNMENT_SINCE = 9


async def handle(context: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    if not is_group_id(request.group_id):
        return _refused(context, request, ErrorCode.INVALID_GROUP_ID)
    client_id = context.header.client_id or ""
    try:
        reply = await context.broker.groups.join(
            request.group_id,
            JoinRequest(
                member_id=request.member_id,
                new_member_id=f"{request.group_instance_id or client_id}-{new_uuid()}",
                client_id=client_id,
                client_host=context.client_host,
                session_timeout_ms=request.session_timeout_ms,
                rebalance_timeout_ms=request.rebalance_timeout_ms,
                protocol_type=request.protocol_type,
                protocols=tuple((protocol.name, bytes(protocol.metadata)) for protocol in request.protocols),
                instance_id=request.group_instance_id,
                requires_member_id=context.version >= _REQUIRES_MEMBER_ID_SINCE,
                supports_skipping_assignment=context.version >= _SKIPS_ASSIGNMENT_SINCE,
            ),
        )
    except StreamHouseError as problem:
        return _refused(context, request, coordinator_code(problem))
    if reply.error is not None:
        return _refused(context, request, group_code(reply.error), member_id=reply.member_id)
    return JoinGroupResponse(
        generation_id=reply.generation,
        protocol_type=reply.protocol_type,
        protocol_name=reply.protocol_name or "",
        leader=reply.leader,
        skip_assignment=reply.skip_assignment,
        member_id=reply.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=member.member_id, group_instance_id=member.instance_id, metadata=member.metadata
            )
            for member in reply.members
        ],
    )


def _refused(
    context: Context, request: JoinGroupRequest, code: ErrorCode, *, member_id: str | None = None
) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=code,
        protocol_name=None if context.version >= _NULL_PROTOCOL_SINCE else "",
        member_id=request.member_id if member_id is None else member_id,
    )
