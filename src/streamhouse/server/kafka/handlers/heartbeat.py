"""Heartbeat (12), versions 0 to 4: a member is alive, and hears of a rebalance."""

from __future__ import annotations

from streamhouse.core.groups.classic_messages import MemberClaim
from streamhouse.core.groups.outcome import GroupError
from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import coordinator_code, group_code, is_group_id
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import heartbeat as messages
from streamhouse.wire.kafka.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: HeartbeatRequest) -> HeartbeatResponse:
    if not is_group_id(request.group_id):
        return HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    claim = MemberClaim(
        member_id=request.member_id, generation=request.generation_id, instance_id=request.group_instance_id
    )
    try:
        refusal = await context.broker.groups.heartbeat(request.group_id, claim)
    except StreamHouseError as problem:
        return HeartbeatResponse(error_code=coordinator_code(problem))
    if refusal is GroupError.COORDINATOR_LOAD_IN_PROGRESS:
        # As Kafka does, for clients know no such answer here: sessions begin anew when the group is there.
        return HeartbeatResponse()
    return HeartbeatResponse(error_code=group_code(refusal))
