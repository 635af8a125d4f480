"""AlterPartitionReassignments (45), versions 0 and 1: a partition may be assigned to the node that leads it already.

Every other assignment is refused with INVALID_REPLICA_ASSIGNMENT: agents share the partitions out among themselves, and
`streamhouse partition move` is how an operator moves one. There is never a reassignment to call off."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import brief, code_of
from streamhouse.server.kafka.partitions import TopicLookup, leader_of
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import alter_partition_reassignments as messages
from streamhouse.wire.kafka.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    lookup = TopicLookup(context.broker)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=[await _topic(context, lookup, asked) for asked in request.topics],
    )


async def _topic(context: Context, lookup: TopicLookup, asked: ReassignableTopic) -> ReassignableTopicResponse:
    return ReassignableTopicResponse(
        name=asked.name,
        partitions=[await _partition(context, lookup, asked.name, partition) for partition in asked.partitions],
    )


async def _partition(
    context: Context, lookup: TopicLookup, name: str, asked: ReassignablePartition
) -> ReassignablePartitionResponse:
    code, message = ErrorCode.NONE, None
    try:
        topic = await lookup.get(name)
        if not 0 <= asked.partition_index < topic.partition_count:
            code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {asked.partition_index}"
        elif asked.replicas is None:
            code, message = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "nothing is being reassigned"
        elif asked.replicas != [leader_of(context.broker, topic, asked.partition_index).node_id]:
            code, message = (
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                (
                    "the agents share the partitions out among themselves, a leader for each and no replicas; "
                    "an operator moves one with `streamhouse partition move`"
                ),
            )
    except StreamHouseError as problem:
        code, message = code_of(problem), brief(problem)
    return ReassignablePartitionResponse(partition_index=asked.partition_index, error_code=code, error_message=message)
