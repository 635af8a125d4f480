"""ElectLeaders (43), versions 0 to 2: no election is ever needed, for each partition's agent is chosen by its lease.

Who asks for all partitions gets an empty list, as from Kafka where every leader is the preferred one. A partition that
has no leader waits for its agent (PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE); giving up what a
lost disk had is left to `streamhouse partition elect --unclean`."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import brief, code_of
from streamhouse.server.kafka.partitions import TopicLookup, leader_of
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import elect_leaders as messages
from streamhouse.wire.kafka.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_UNCLEAN = 1


async def handle(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    lookup = TopicLookup(context.broker)
    return ElectLeadersResponse(
        replica_election_results=[
            await _results(context, lookup, asked, is_unclean=request.election_type == _UNCLEAN)
            for asked in request.topic_partitions or ()
        ]
    )


async def _results(
    context: Context, lookup: TopicLookup, asked: TopicPartitions, *, is_unclean: bool
) -> ReplicaElectionResult:
    return ReplicaElectionResult(
        topic=asked.topic,
        partition_result=[
            await _result(context, lookup, asked.topic, partition, is_unclean=is_unclean)
            for partition in asked.partitions
        ],
    )


async def _result(
    context: Context, lookup: TopicLookup, name: str, partition: int, *, is_unclean: bool
) -> PartitionResult:
    try:
        topic = await lookup.get(name)
    except StreamHouseError as problem:
        return PartitionResult(partition_id=partition, error_code=code_of(problem), error_message=brief(problem))
    code, message = ErrorCode.ELECTION_NOT_NEEDED, "the agents see to it that each partition has its leader"
    if not 0 <= partition < topic.partition_count:
        code, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}"
    elif leader_of(context.broker, topic, partition).node_id < 0:
        code = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE if is_unclean else ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        message = (
            "it waits for the agent whose disk may hold records of it; "
            "`streamhouse partition elect TOPIC P --unclean --metadata …` gives them up"
        )
    return PartitionResult(partition_id=partition, error_code=code, error_message=message)
