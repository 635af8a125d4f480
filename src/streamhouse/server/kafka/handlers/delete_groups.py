"""DeleteGroups (42), versions 0 to 2: groups without members, with their offsets."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import coordinator_code, group_code
from streamhouse.wire.kafka.messages import delete_groups as messages
from streamhouse.wire.kafka.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(results=[await _delete(context, group_id) for group_id in request.groups_names])


async def _delete(context: Context, group_id: str) -> DeletableGroupResult:
    try:
        code = group_code(await context.broker.groups.delete(group_id))
    except StreamHouseError as problem:
        code = coordinator_code(problem)
    return DeletableGroupResult(group_id=group_id, error_code=code)
