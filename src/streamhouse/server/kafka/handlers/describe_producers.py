"""DescribeProducers (61), version 0: the idempotent producers that a partition's leader remembers.

None of them has a transaction. A partition that this node does not lead is answered with NOT_LEADER_OR_FOLLOWER."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import TopicLookup
from streamhouse.wire.kafka.messages import describe_producers as messages
from streamhouse.wire.kafka.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_NONE = -1


async def handle(context: Context, request: DescribeProducersRequest) -> DescribeProducersResponse:
    lookup = TopicLookup(context.broker)
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=asked.name,
                partitions=[await _partition(context, lookup, asked.name, index) for index in asked.partition_indexes],
            )
            for asked in request.topics
        ]
    )


async def _partition(context: Context, lookup: TopicLookup, name: str, index: int) -> PartitionResponse:
    try:
        leader = context.broker.topics.leader(await lookup.get(name), index)
    except StreamHouseError as problem:
        return PartitionResponse(partition_index=index, error_code=code_of(problem), error_message=str(problem))
    return PartitionResponse(
        partition_index=index,
        error_message=None,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=producer.epoch,
                last_sequence=producer.batches[-1].last_sequence,
                last_timestamp=producer.last_used_ms,
                coordinator_epoch=_NONE,
                current_txn_start_offset=_NONE,
            )
            for producer_id, producer in leader.producers.items()
        ],
    )
