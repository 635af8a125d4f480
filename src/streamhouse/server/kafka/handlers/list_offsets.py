"""ListOffsets (2), versions 1 to 11: the ends of a log, and the offset at a time.

-1 latest, -2 and -4 earliest, -3 the record with the largest timestamp. -5 and -6 ask about tiered storage in Kafka's
sense and are answered as by a broker without it: no such offset. Other times below 0, and those that are younger than
the version in which they are asked for, are answered with UNSUPPORTED_VERSION. A partition that is named twice is
answered with INVALID_REQUEST, as in Kafka."""

from __future__ import annotations

from collections.abc import Collection

from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import InvalidInput, StreamHouseError
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.distinct import distinct, repeated
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import NO_ID, check_end_is_known, check_leader_epoch, find_leader
from streamhouse.server.kafka.refusals import UnsupportedVersion
from streamhouse.wire.kafka.messages import list_offsets as messages
from streamhouse.wire.kafka.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_NONE = (-1, -1)
_SPOKEN_SINCE = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
"""The version that each of the special timestamps came with."""


async def handle(context: Context, request: ListOffsetsRequest) -> ListOffsetsResponse:
    twice = repeated((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    await _partition(context, topic.name, asked, twice)
                    for asked in distinct(topic.partitions, lambda asked: asked.partition_index)
                ],
            )
            for topic in request.topics
        ]
    )


async def _partition(
    context: Context, topic: str, asked: ListOffsetsPartition, twice: Collection[tuple[str, int]]
) -> ListOffsetsPartitionResponse:
    try:
        if (topic, asked.partition_index) in twice:
            raise InvalidInput("a partition is named more than once")
        _check_timestamp(asked.timestamp, context.version)
        leader = find_leader(context.broker, topic, NO_ID, asked.partition_index)
        check_leader_epoch(leader, asked.current_leader_epoch)
        check_end_is_known(leader)
        offset, timestamp = await _offset(context, leader, asked.timestamp)
    except StreamHouseError as problem:
        return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code_of(problem))
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader.epoch if offset >= 0 else -1,
    )


def _check_timestamp(timestamp_ms: int, version: int) -> None:
    since = _SPOKEN_SINCE.get(timestamp_ms)
    if timestamp_ms < 0 and (since is None or version < since):
        raise UnsupportedVersion(f"timestamp {timestamp_ms} means nothing in version {version}")


async def _offset(context: Context, leader: PartitionLeader, timestamp_ms: int) -> tuple[int, int]:
    match timestamp_ms:
        case -1:
            return leader.high_watermark, -1
        case -2 | -4:
            return leader.log_start_offset, -1
        case -3:
            return await context.broker.newest_timestamp(leader) or _NONE
        case _ if timestamp_ms < 0:
            return _NONE
        case _:
            return await context.broker.offset_at(leader, timestamp_ms) or _NONE
