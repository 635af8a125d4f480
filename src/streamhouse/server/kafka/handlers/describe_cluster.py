"""DescribeCluster (60), versions 0 to 2: the cluster's id and its nodes."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_cluster as messages
from streamhouse.wire.kafka.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_BROKERS = 1


async def handle(context: Context, request: DescribeClusterRequest) -> DescribeClusterResponse:
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="there are no controllers to connect to",
            endpoint_type=request.endpoint_type,
        )
    nodes = context.broker.nodes
    return DescribeClusterResponse(
        cluster_id=context.broker.identity.cluster_id,
        controller_id=nodes.controller_id,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if request.include_cluster_authorized_operations else NOT_ASKED_FOR
        ),
        brokers=[
            DescribeClusterBroker(broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack or None)
            for node in nodes.all()
        ],
    )
