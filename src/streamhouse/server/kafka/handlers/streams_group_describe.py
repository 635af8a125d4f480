"""StreamsGroupDescribe (89), version 0: there are no groups of this protocol, so none that is asked for is found.

Kafka Streams works with `group.protocol=classic`, its default; such a group is described by DescribeGroups."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.group_errors import not_of_kind
from streamhouse.wire.kafka.messages import streams_group_describe as messages
from streamhouse.wire.kafka.messages.streams_group_describe import (
    DescribedGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: StreamsGroupDescribeRequest) -> StreamsGroupDescribeResponse:
    return StreamsGroupDescribeResponse(
        groups=[_describe(context, group_id) for group_id in dict.fromkeys(request.group_ids)]
    )


def _describe(context: Context, group_id: str) -> DescribedGroup:
    code, why = not_of_kind("streams", group_id, context.broker.groups.describe(group_id))
    return DescribedGroup(error_code=code, error_message=why, group_id=group_id)
