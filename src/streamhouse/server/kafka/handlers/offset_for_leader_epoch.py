"""OffsetForLeaderEpoch (23), versions 2 to 4: where an epoch's records end, so that clients notice truncation.

Epochs begin at 1 here. Epoch 0, which clients bring from Kafka, is nobody's, and ends with the log."""

from __future__ import annotations

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import NO_ID, check_end_is_known, check_leader_epoch, find_leader
from streamhouse.wire.kafka.messages import offset_for_leader_epoch as messages
from streamhouse.wire.kafka.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]


async def handle(context: Context, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_end(context, topic.topic, asked) for asked in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _end(context: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        leader = find_leader(context.broker, topic, NO_ID, asked.partition)
        check_leader_epoch(leader, asked.current_leader_epoch)
        check_end_is_known(leader)
    except StreamHouseError as problem:
        return EpochEndOffset(partition=asked.partition, error_code=code_of(problem))
    epoch, end_offset = leader.epoch_end(asked.leader_epoch)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=end_offset)
