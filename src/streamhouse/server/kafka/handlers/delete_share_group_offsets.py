"""DeleteShareGroupOffsets (92), version 0: there are no share groups, so there is nothing to delete."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import not_of_kind
from streamhouse.wire.kafka.messages import delete_share_group_offsets as messages
from streamhouse.wire.kafka.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    code, why = not_of_kind("share", request.group_id, context.broker.groups.describe(request.group_id))
    return DeleteShareGroupOffsetsResponse(error_code=code, error_message=why)
