"""ShareGroupDescribe (77), version 1: there are no share groups, so every one that is asked for is not found."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import not_of_kind
from streamhouse.wire.kafka.messages import share_group_describe as messages
from streamhouse.wire.kafka.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: ShareGroupDescribeRequest) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[_describe(context, group_id) for group_id in dict.fromkeys(request.group_ids)]
    )


def _describe(context: Context, group_id: str) -> DescribedGroup:
    code, why = not_of_kind("share", group_id, context.broker.groups.describe(group_id))
    return DescribedGroup(error_code=code, error_message=why, group_id=group_id)
