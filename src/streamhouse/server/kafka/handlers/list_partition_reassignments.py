"""ListPartitionReassignments (46), version 0: none is ever under way.

A partition has one leader and no replicas to move; how it changes hands is seen with `streamhouse partition list`."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.messages import list_partition_reassignments as messages
from streamhouse.wire.kafka.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(_context: Context, _request: ListPartitionReassignmentsRequest) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
