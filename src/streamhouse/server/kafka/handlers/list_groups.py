"""ListGroups (16), versions 0 to 5: by state since version 4, by type since version 5.

Each agent lists the groups that it coordinates; a client asks all of them."""

from __future__ import annotations

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.group_kind import GroupKind
from streamhouse.core.groups.outcome import GroupError
from streamhouse.groups.group import Group
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import group_code
from streamhouse.wire.kafka.messages import list_groups as messages
from streamhouse.wire.kafka.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = context.broker.groups.all_groups()
    if isinstance(groups, GroupError):
        return ListGroupsResponse(error_code=group_code(groups))
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = [_listed(group) for group in groups]
    return ListGroupsResponse(
        groups=[
            group
            for group in listed
            if (not states or group.group_state.lower() in states) and (not types or group.group_type.lower() in types)
        ]
    )


def _listed(group: Group) -> ListedGroup:
    machine = group.machine
    if machine is None:
        return ListedGroup(group_id=group.group_id, group_state="Empty", group_type=GroupKind.CLASSIC.value)
    is_classic = isinstance(machine, ClassicGroup)
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=(machine.protocol_type or "") if isinstance(machine, ClassicGroup) else "consumer",
        group_state=machine.state.value,
        group_type=(GroupKind.CLASSIC if is_classic else GroupKind.CONSUMER).value,
    )
