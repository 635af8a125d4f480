"""Answers of the Kafka protocol that refuse a request, or what it says of one topic: which APIs have them, and how each
says it. Clients see the codes where a real broker puts them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    consumer_group_heartbeat,
    create_partitions,
    create_topics,
    delete_topics,
    describe_groups,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    offset_commit,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)

_NO_ID = UUID(int=0)
_SAID = "injected by the test"


@dataclass(frozen=True, slots=True)
class Refusal:
    """How an API refuses. `topics` and `answers` are the fields of its request and its answer that list topics, if it
    has such, so that one topic can be refused and the others served."""

    refuse: Callable[[Any, ErrorCode], Any]
    topics: str = ""
    answers: str = ""


def _produce(request: Any, code: ErrorCode) -> Any:
    return produce.ProduceResponse(
        responses=[
            produce.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    produce.PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=-1, error_message=_SAID
                    )
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _fetch(request: Any, code: ErrorCode) -> Any:
    return fetch.FetchResponse(
        responses=[
            fetch.FetchableTopicResponse(
                topic=topic.topic,
                topic_id=topic.topic_id,
                partitions=[
                    fetch.PartitionData(partition_index=asked.partition, error_code=code, high_watermark=-1)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _list_offsets(request: Any, code: ErrorCode) -> Any:
    return list_offsets.ListOffsetsResponse(
        topics=[
            list_offsets.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    list_offsets.ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_commit(request: Any, code: ErrorCode) -> Any:
    return offset_commit.OffsetCommitResponse(
        topics=[
            offset_commit.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    offset_commit.OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _offset_fetch(request: Any, code: ErrorCode) -> Any:
    return offset_fetch.OffsetFetchResponse(
        error_code=code,
        groups=[
            offset_fetch.OffsetFetchResponseGroup(group_id=group.group_id, error_code=code) for group in request.groups
        ],
    )


def _offset_for_leader_epoch(request: Any, code: ErrorCode) -> Any:
    return offset_for_leader_epoch.OffsetForLeaderEpochResponse(
        topics=[
            offset_for_leader_epoch.OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    offset_for_leader_epoch.EpochEndOffset(partition=asked.partition, error_code=code)
                    for asked in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _find_coordinator(request: Any, code: ErrorCode) -> Any:
    nowhere: dict[str, Any] = {"error_code": code, "error_message": _SAID, "node_id": -1, "port": -1}
    return find_coordinator.FindCoordinatorResponse(
        **nowhere, coordinators=[find_coordinator.Coordinator(key=key, **nowhere) for key in request.coordinator_keys]
    )


def _create_topics(request: Any, code: ErrorCode) -> Any:
    return create_topics.CreateTopicsResponse(
        topics=[
            create_topics.CreatableTopicResult(name=topic.name, error_code=code, error_message=_SAID)
            for topic in request.topics
        ]
    )


def _create_partitions(request: Any, code: ErrorCode) -> Any:
    return create_partitions.CreatePartitionsResponse(
        results=[
            create_partitions.CreatePartitionsTopicResult(name=topic.name, error_code=code, error_message=_SAID)
            for topic in request.topics
        ]
    )


def _delete_topics(request: Any, code: ErrorCode) -> Any:
    named = [(topic.name, topic.topic_id) for topic in request.topics]
    named += [(name, _NO_ID) for name in request.topic_names]
    return delete_topics.DeleteTopicsResponse(
        responses=[
            delete_topics.DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=_SAID)
            for name, topic_id in named
        ]
    )


def _describe_groups(request: Any, code: ErrorCode) -> Any:
    return describe_groups.DescribeGroupsResponse(
        groups=[describe_groups.DescribedGroup(group_id=group, error_code=code) for group in request.groups]
    )


METADATA = "Metadata"
"""Refused by what it says of topics: a client that hears of no broker would hear of nothing else."""

REFUSALS: Mapping[str, Refusal] = MappingProxyType(
    {
        "Produce": Refusal(_produce, "topic_data", "responses"),
        "Fetch": Refusal(_fetch, "topics", "responses"),
        "ListOffsets": Refusal(_list_offsets, "topics", "topics"),
        METADATA: Refusal(lambda _, code: code, "topics", "topics"),
        "OffsetCommit": Refusal(_offset_commit, "topics", "topics"),
        "OffsetFetch": Refusal(_offset_fetch),
        "OffsetForLeaderEpoch": Refusal(_offset_for_leader_epoch, "topics", "topics"),
        "FindCoordinator": Refusal(_find_coordinator),
        "JoinGroup": Refusal(
            lambda request, code: join_group.JoinGroupResponse(error_code=code, member_id=request.member_id)
        ),
        "SyncGroup": Refusal(lambda _, code: sync_group.SyncGroupResponse(error_code=code)),
        "Heartbeat": Refusal(lambda _, code: heartbeat.HeartbeatResponse(error_code=code)),
        "LeaveGroup": Refusal(lambda _, code: leave_group.LeaveGroupResponse(error_code=code)),
        "ConsumerGroupHeartbeat": Refusal(
            lambda _, code: consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
                error_code=code, error_message=_SAID
            )
        ),
        "DescribeGroups": Refusal(_describe_groups),
        "ListGroups": Refusal(lambda _, code: list_groups.ListGroupsResponse(error_code=code)),
        "InitProducerId": Refusal(
            lambda _, code: init_producer_id.InitProducerIdResponse(error_code=code, producer_epoch=-1)
        ),
        "CreateTopics": Refusal(_create_topics, "topics", "topics"),
        "CreatePartitions": Refusal(_create_partitions, "topics", "results"),
        "DeleteTopics": Refusal(_delete_topics),
    }
)
