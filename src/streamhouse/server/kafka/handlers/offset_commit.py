"""OffsetCommit (8), versions 2 to 10: from the current generation of a group, or of consumers without one.
An offset below 0 is kept and given back, and is no commit to anybody else.

Gaps: the retention time of versions 2 to 4 is not used; the node's `offsets_retention` holds for all."""

from __future__ import annotations

from streamhouse.core.groups.classic_messages import MemberClaim
from streamhouse.core.groups.outcome import GroupError
from streamhouse.metadata.groups import CommittedOffset
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.server.kafka.context import Context
from streamhouse.server.kafka.errors import code_of
from streamhouse.server.kafka.group_errors import coordinator_code, group_code, is_group_id
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
    refusal = None if is_group_id(request.group_id) else ErrorCode.INVALID_GROUP_ID
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
        codes |= await _store(context, request, offsets, places)
    return OffsetCommitResponse(topics=[_answer(index, topic, codes) for index, topic in enumerate(request.topics)])


async def _store(
    context: Context,
    request: OffsetCommitRequest,
    offsets: dict[TopicPartition, CommittedOffset],
    places: dict[TopicPartition, list[tuple[int, int]]],
) -> dict[tuple[int, int], ErrorCode]:
    claim = MemberClaim(
        member_id=request.member_id,
        generation=request.generation_id_or_member_epoch,
        instance_id=request.group_instance_id,
    )
    codes: dict[TopicPartition, ErrorCode]
    try:
        outcome = await context.broker.groups.commit(request.group_id, claim, offsets)
    except StreamHouseError as problem:
        codes = dict.fromkeys(places, coordinator_code(problem))
    else:
        if isinstance(outcome, GroupError):
            codes = dict.fromkeys(places, group_code(outcome))
        else:
            codes = {
                partition: ErrorCode.NONE if problem is None else code_of(problem)
                for partition, problem in outcome.items()
            }
    return {place: codes[partition] for partition, named in places.items() for place in named}


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
