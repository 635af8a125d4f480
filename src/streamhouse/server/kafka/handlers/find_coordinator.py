"""FindCoordinator (10), versions 0 to 6: who coordinates a group. Transactions have no coordinator.

Who looks for one gets TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which ends librdkafka's and Java's `init_transactions` at
once; to any other refusal they would come back until their time is up."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import find_coordinator as messages
from streamhouse.wire.kafka.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_GROUP = 0
_TRANSACTION = 1
_BATCHED_SINCE = 4


async def handle(context: Context, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if context.version >= _BATCHED_SINCE else [request.key]
    coordinators = [_coordinator(context, key, request.key_type) for key in keys]
    if context.version >= _BATCHED_SINCE:
        return FindCoordinatorResponse(coordinators=coordinators)
    (only,) = coordinators
    return FindCoordinatorResponse(
        error_code=only.error_code,
        error_message=only.error_message,
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _coordinator(context: Context, key: str, key_type: int) -> Coordinator:
    if key_type == _TRANSACTION:
        return Coordinator(
            key=key,
            node_id=-1,
            port=-1,
            error_code=ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            error_message="transactions are not supported: produce without a transactional id",
        )
    if key_type != _GROUP:
        return Coordinator(
            key=key,
            node_id=-1,
            port=-1,
            error_code=ErrorCode.INVALID_REQUEST,
            error_message="only groups have coordinators here",
        )
    node = context.broker.nodes.coordinator_of(key)
    if node is None:
        return Coordinator(
            key=key,
            node_id=-1,
            port=-1,
            error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE,
            error_message="no agent coordinates this group at the moment",
        )
    return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port, error_message=None)
