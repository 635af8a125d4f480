"""DescribeQuorum (55), versions 0 to 2: the metadata is in a database, and so no node votes about it.

Tools get the one answer that they can read and that misleads least: the node that is named as the controller is the
only voter, the others observe, and the log of metadata that Kafka would have is empty."""

from __future__ import annotations

from streamhouse.server.kafka.context import Context
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import describe_quorum as messages
from streamhouse.wire.kafka.messages.describe_quorum import (
    AnsweredPartitionData,
    AnsweredTopicData,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_METADATA_TOPIC = "__cluster_metadata"


async def handle(context: Context, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    nodes = context.broker.nodes
    controller_id = nodes.controller_id
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            AnsweredTopicData(
                topic_name=topic.topic_name,
                partitions=[_partition(context, topic.topic_name, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ],
        nodes=[
            Node(node_id=node.node_id, listeners=[Listener(name="PLAINTEXT", host=node.host, port=node.port)])
            for node in nodes.all()
            if node.node_id == controller_id
        ],
    )


def _partition(context: Context, topic: str, asked: PartitionData) -> AnsweredPartitionData:
    if topic != _METADATA_TOPIC or asked.partition_index != 0:
        return AnsweredPartitionData(
            partition_index=asked.partition_index,
            error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            error_message=f"only {_METADATA_TOPIC} has a quorum",
            leader_id=-1,
        )
    nodes = context.broker.nodes
    controller_id, now_ms = nodes.controller_id, context.broker.clock.now_ms()
    replicas = [
        ReplicaState(replica_id=node.node_id, last_fetch_timestamp=now_ms, last_caught_up_timestamp=now_ms)
        for node in nodes.all()
    ]
    return AnsweredPartitionData(
        error_message=None,
        leader_id=controller_id,
        current_voters=[replica for replica in replicas if replica.replica_id == controller_id],
        observers=[replica for replica in replicas if replica.replica_id != controller_id],
    )
