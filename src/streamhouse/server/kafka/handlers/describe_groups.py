"""DescribeGroups (15), versions 0 to 6: the members of classic groups.

A group of the newer protocol is answered as Kafka does: GROUP_ID_NOT_FOUND since version 6, Dead before."""

from __future__ import annotations

from streamhouse.core.groups.classic_snapshot import GroupDescription
from streamhouse.core.groups.outcome import GroupError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import group_code
from streamhouse.server.kafka.operations import GROUP_OPERATIONS, NOT_ASKED_FOR
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_groups as messages
from streamhouse.wire.kafka.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_NOT_FOUND_SINCE = 6


async def handle(context: Context, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED_FOR
    group_ids = dict.fromkeys(request.groups)
    return DescribeGroupsResponse(groups=[_describe(context, group_id, operations) for group_id in group_ids])


def _describe(context: Context, group_id: str, operations: int) -> DescribedGroup:
    found = context.broker.groups.describe(group_id)
    if found is None:
        return DescribedGroup(group_id=group_id, group_state="Empty", authorized_operations=operations)
    if isinstance(found, GroupError) and found is not GroupError.GROUP_ID_NOT_FOUND:
        return DescribedGroup(error_code=group_code(found), error_message=group_code(found).meaning, group_id=group_id)
    if not isinstance(found, GroupDescription):
        is_error = context.version >= _NOT_FOUND_SINCE
        return DescribedGroup(
            error_code=ErrorCode.GROUP_ID_NOT_FOUND if is_error else ErrorCode.NONE,
            error_message=f"there is no classic group {group_id[:300]!r}" if is_error else None,
            group_id=group_id,
            group_state="Dead",
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=found.state.value,
        authorized_operations=operations,
        protocol_type=found.protocol_type,
        protocol_data=found.protocol_name,
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata,
                member_assignment=member.assignment,
            )
            for member in found.members
        ],
    )
