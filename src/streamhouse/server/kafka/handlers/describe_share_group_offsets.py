"""DescribeShareGroupOffsets (90), versions 0 to 1: there are no share groups, so none stands anywhere."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import not_of_kind
from streamhouse.wire.kafka.messages import describe_share_group_offsets as messages
from streamhouse.wire.kafka.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    group_ids = dict.fromkeys(group.group_id for group in request.groups)
    return DescribeShareGroupOffsetsResponse(groups=[_describe(context, group_id) for group_id in group_ids])


def _describe(context: Context, group_id: str) -> DescribeShareGroupOffsetsResponseGroup:
    code, why = not_of_kind("share", group_id, context.broker.groups.describe(group_id))
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, error_code=code, error_message=why)
