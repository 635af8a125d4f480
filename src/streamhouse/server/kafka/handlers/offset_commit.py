"""OffsetCommit (8), versions 2 to 10: stores the offsets of consumers that assign partitions themselves.

Gaps: groups with members are not coordinated yet, so a commit that names a generation is refused."""

from __future__ import annotations

from streamhouse.metadata.store import CommittedOffset
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition, check_group_id
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.partitions import find_topic
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import offset_commit as messages
from streamhouse.wire.kafka.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from streamhouse.wire.kafka.registry import APIS

API = APIS[messages.API_KEY]
_MAX_METADATA_BYTES = 4096


async def handle(context: Context, request: OffsetCommitRequest) -> OffsetCommitResponse:
    codes: dict[tuple[int, int], ErrorCode] = {}
    places: dict[TopicPartition, list[tuple[int, int]]] = {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    refusal = _refusal(request)
    for topic_index, topic in enumerate(request.topics):
        try:
            known = find_topic(context.broker, topic.name, topic.topic_id)
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        except StreamHouseError as problem:
            known, unknown = None, code_of(problem)
        for index, asked in enumerate(topic.partitions):
            place = (topic_index, index)
            if refusal is not None:
                codes[place] = refusal
            elif known is None:
                codes[place] = unknown
            elif len((asked.committed_metadata or "").encode()) > _MAX_METADATA_BYTES:
                codes[place] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                partition = TopicPartition(known.topic_id, asked.partition_index)
                places.setdefault(partition, []).append(place)
                offsets[partition] = CommittedOffset(
                    offset=asked.committed_offset,
                    leader_epoch=asked.committed_leader_epoch,
                    metadata=asked.committed_metadata or "",
                )
    if offsets:
        codes |= await _store(context, request.group_id, offsets, places)
    return OffsetCommitResponse(topics=[_answer(index, topic, codes) for index, topic in enumerate(request.topics)])


def _refusal(request: OffsetCommitRequest) -> ErrorCode | None:
    try:
        check_group_id(request.group_id)
    except StreamHouseError:
        return ErrorCode.INVALID_GROUP_ID
    if request.generation_id_or_member_epoch >= 0 or request.member_id:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return None


async def _store(
    context: Context,
    group_id: str,
    offsets: dict[TopicPartition, CommittedOffset],
    places: dict[TopicPartition, list[tuple[int, int]]],
) -> dict[tuple[int, int], ErrorCode]:
    outcomes: dict[TopicPartition, Exception | None]
    try:
        outcomes = await context.broker.group_offsets.commit_offsets(group_id, offsets)
    except StreamHouseError as problem:
        outcomes = dict.fromkeys(places, problem)
    return {
        place: ErrorCode.NONE if problem is None else code_of(problem)
        for partition, problem in outcomes.items()
        for place in places[partition]
    }


def _answer(
    topic_index: int, topic: OffsetCommitRequestTopic, codes: dict[tuple[int, int], ErrorCode]
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(
                partition_index=asked.partition_index,
                error_code=codes.get((topic_index, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            )
            for index, asked in enumerate(topic.partitions)
        ],
    )
