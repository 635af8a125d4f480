"""DescribeProducers (61), version 0: the idempotent producers that a partition's leader remembers.

None of them has a transaction. A partition that this node does not lead is answered with NOT_LEADER_OR_FOLLOWER."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import brief, code_of
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
    # A partition that is named often is answered once: a short name stands for a great many producers.
    asked: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        asked.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=name, partitions=[await _partition(context, lookup, name, index) for index in partitions]
            )
            for name, partitions in asked.items()
        ]
    )


async def _partition(context: Context, lookup: TopicLookup, name: str, index: int) -> PartitionResponse:
    try:
        leader = context.broker.topics.leader(await lookup.get(name), index)
    except StreamHouseError as problem:
        return PartitionResponse(partition_index=index, error_code=code_of(problem), error_message=brief(problem))
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
