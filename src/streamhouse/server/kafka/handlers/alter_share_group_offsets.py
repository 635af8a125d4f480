"""AlterShareGroupOffsets (91), version 0: there are no share groups, so there is nothing to alter.

Kafka makes the group for that; here it is not found."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import not_of_kind
from streamhouse.wire.kafka.messages import alter_share_group_offsets as messages
from streamhouse.wire.kafka.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    code, why = not_of_kind("share", request.group_id, context.broker.groups.describe(request.group_id))
    return AlterShareGroupOffsetsResponse(error_code=code, error_message=why)
