"""Every version of every group API gives an answer that can be read, whether it is asked well or not."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from uuid import UUID, uuid4

import pytest

from log_parts.kafka import Kafka
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import (
    consumer_group_describe,
    consumer_group_heartbeat,
    delete_groups,
    describe_groups,
    heartbeat,
    join_group,
    leave_group,
    list_groups,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    share_group_describe,
    streams_group_describe,
    sync_group,
)
from streamhouse.wire.kafka.messages import consumer_protocol_subscription as subscriptions
from streamhouse.wire.kafka.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse


def versions(module: ModuleType) -> range:
    return range(module.MIN_VERSION, module.MAX_VERSION + 1)


@pytest.fixture
def group() -> str:
    return f"group-{uuid4()}"


def metadata_id(kafka: Kafka, topic: str) -> UUID:
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=topic)])
    topic_id: UUID = kafka.call(metadata, asked, 12).topics[0].topic_id
    return topic_id


def join(
    kafka: Kafka, group: str, version: int = 9, member_id: str = "", metadata: bytes = b"m"
) -> join_group.JoinGroupResponse:
    request = join_group.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    return kafka.call(join_group, request, version)


def member_of(kafka: Kafka, group: str, version: int = 9) -> tuple[str, int]:
    """Join as the only member, by way of the required member id where the version has it."""
    answer = join(kafka, group, version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = join(kafka, group, version, answer.member_id)
    assert answer.error_code == ErrorCode.NONE
    assert answer.leader == answer.member_id
    return answer.member_id, answer.generation_id


@pytest.mark.parametrize("version", versions(join_group))
def test_a_member_joins_syncs_beats_and_leaves(kafka: Kafka, group: str, version: int) -> None:
    member_id, generation = member_of(kafka, group, version)
    share = sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=b"everything")
    for sync_version in versions(sync_group):
        request = sync_group.SyncGroupRequest(
            group_id=group, generation_id=generation, member_id=member_id, assignments=[share],
            protocol_type="consumer", protocol_name="range",
        )  # fmt: skip
        answer = kafka.call(sync_group, request, sync_version)
        assert (answer.error_code, bytes(answer.assignment)) == (ErrorCode.NONE, b"everything")
    for beat_version in versions(heartbeat):
        beat = heartbeat.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
        assert kafka.call(heartbeat, beat, beat_version).error_code == ErrorCode.NONE
    left = leave_group.LeaveGroupRequest(group_id=group, member_id=member_id)
    assert kafka.call(leave_group, left, 2).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", versions(leave_group))
def test_a_stranger_is_told_so_in_every_version(kafka: Kafka, group: str, version: int) -> None:
    member_of(kafka, group)
    request = leave_group.LeaveGroupRequest(
        group_id=group, member_id="nobody", members=[leave_group.MemberIdentity(member_id="nobody")]
    )
    answer = kafka.call(leave_group, request, version)
    codes = {answer.error_code, *(member.error_code for member in answer.members)}
    assert ErrorCode.UNKNOWN_MEMBER_ID in codes


@pytest.mark.parametrize("version", versions(describe_groups))
def test_groups_are_described_and_those_that_are_not_there_are_dead(kafka: Kafka, group: str, version: int) -> None:
    member_of(kafka, group)
    request = describe_groups.DescribeGroupsRequest(groups=[group, "not-there"])
    ours, other = kafka.call(describe_groups, request, version).groups
    assert (ours.group_state, len(ours.members)) == ("CompletingRebalance", 1)
    assert other.group_state == "Dead"


@pytest.mark.parametrize(
    ("kind", "messages", "request_type"),
    [
        ("consumer", consumer_group_describe, consumer_group_describe.ConsumerGroupDescribeRequest),
        ("share", share_group_describe, share_group_describe.ShareGroupDescribeRequest),
        ("streams", streams_group_describe, streams_group_describe.StreamsGroupDescribeRequest),
    ],
)
def test_a_classic_group_is_not_found_among_those_of_another_kind(
    kafka: Kafka, group: str, kind: str, messages: ModuleType, request_type: type[Any]
) -> None:
    member_of(kafka, group)

    for version in versions(messages):
        answer = kafka.call(messages, request_type(group_ids=[group, "not-there", group]), version)

        assert [(each.group_id, each.error_code, each.error_message) for each in answer.groups] == [
            (name, ErrorCode.GROUP_ID_NOT_FOUND, f"there is no {kind} group {name!r}") for name in (group, "not-there")
        ]


@pytest.mark.parametrize("version", versions(list_groups))
def test_groups_are_listed(kafka: Kafka, group: str, version: int) -> None:
    member_of(kafka, group)
    listed = kafka.call(list_groups, list_groups.ListGroupsRequest(), version).groups
    assert group in [item.group_id for item in listed]


def test_a_list_can_be_narrowed_to_states_and_types(kafka: Kafka, group: str) -> None:
    member_of(kafka, group)

    def listed(**narrowed: list[str]) -> bool:
        answer = kafka.call(list_groups, list_groups.ListGroupsRequest(**narrowed), 5)
        return group in [item.group_id for item in answer.groups]

    assert listed(states_filter=["CompletingRebalance"], types_filter=["classic"])
    assert not listed(states_filter=["Stable"])
    assert not listed(types_filter=["consumer"])


@pytest.mark.parametrize("version", versions(delete_groups))
def test_only_an_empty_group_is_deleted(kafka: Kafka, group: str, version: int) -> None:
    member_id, _ = member_of(kafka, group)
    request = delete_groups.DeleteGroupsRequest(groups_names=[group])
    (refused,) = kafka.call(delete_groups, request, version).results
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    kafka.call(leave_group, leave_group.LeaveGroupRequest(group_id=group, member_id=member_id), 2)
    (deleted,) = kafka.call(delete_groups, request, version).results
    assert deleted.error_code == ErrorCode.NONE
    (gone,) = kafka.call(delete_groups, request, version).results
    assert gone.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", versions(offset_commit)[:-1])
def test_only_the_current_generation_commits(kafka: Kafka, group: str, topic: str, version: int) -> None:
    member_id, generation = member_of(kafka, group)
    share = sync_group.SyncGroupRequestAssignment(member_id=member_id)
    sync = sync_group.SyncGroupRequest(
        group_id=group, generation_id=generation, member_id=member_id, assignments=[share]
    )
    assert kafka.call(sync_group, sync, 3).error_code == ErrorCode.NONE

    def commit(member: str, of_generation: int) -> int:
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=of_generation,
            member_id=member,
            topics=[
                offset_commit.OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=3)],
                )
            ],
        )
        return kafka.call(offset_commit, request, version).topics[0].partitions[0].error_code

    assert commit(member_id, generation) == ErrorCode.NONE
    assert commit(member_id, generation - 1) == ErrorCode.ILLEGAL_GENERATION
    assert commit("nobody", generation) == ErrorCode.UNKNOWN_MEMBER_ID
    asked = offset_fetch.OffsetFetchRequest(
        group_id=group, topics=[offset_fetch.OffsetFetchRequestTopic(name=topic, partition_indexes=[0])]
    )
    assert kafka.call(offset_fetch, asked, 5).topics[0].partitions[0].committed_offset == 3


def test_a_session_is_as_long_as_the_settings_allow(group: str) -> None:
    def answer(kafka: Kafka, session_timeout_ms: int) -> int:
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_timeout_ms,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"m")],
        )
        return kafka.call(join_group, request, 4).error_code

    with (
        Broker(group_min_session_timeout=1_000, group_max_session_timeout=2_000) as broker,
        Kafka(broker.bootstrap) as kafka,
    ):
        assert {ms: answer(kafka, ms) for ms in (999, 1_000, 2_000, 2_001)} == {
            999: ErrorCode.INVALID_SESSION_TIMEOUT,
            1_000: ErrorCode.MEMBER_ID_REQUIRED,
            2_000: ErrorCode.MEMBER_ID_REQUIRED,
            2_001: ErrorCode.INVALID_SESSION_TIMEOUT,
        }


@pytest.mark.parametrize("offset", [-1, -2])
def test_an_offset_below_0_is_taken_and_given_back(kafka: Kafka, group: str, topic: str, offset: int) -> None:
    """kafkajs resets a group by committing these, and asks again for ever when it is refused."""
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=[offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
            )
        ],
    )
    assert kafka.call(offset_commit, request, 5).topics[0].partitions[0].error_code == ErrorCode.NONE

    asked = offset_fetch.OffsetFetchRequest(group_id=group, topics=None)
    (partition,) = kafka.call(offset_fetch, asked, 5).topics[0].partitions
    assert (partition.committed_offset, partition.error_code) == (offset, ErrorCode.NONE)


@pytest.mark.parametrize("version", versions(offset_fetch))
def test_a_commit_that_is_asked_for_often_is_told_once(kafka: Kafka, group: str, topic: str, version: int) -> None:
    topic_id = metadata_id(kafka, topic)
    partition = offset_commit.OffsetCommitRequestPartition(
        partition_index=0, committed_offset=3, committed_metadata="m" * 4_000
    )
    commit = offset_commit.OffsetCommitRequest(
        group_id=group, topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])]
    )
    assert kafka.call(offset_commit, commit, 5).topics[0].partitions[0].error_code == ErrorCode.NONE
    often = {"name": topic, "partition_indexes": [0, 1] * 1_000}
    by_group = offset_fetch.OffsetFetchRequestGroup(
        group_id=group, topics=[offset_fetch.OffsetFetchRequestTopics(topic_id=topic_id, **often)] * 2
    )

    asked = offset_fetch.OffsetFetchRequest(
        group_id=group, topics=[offset_fetch.OffsetFetchRequestTopic(**often)] * 2, groups=[by_group]
    )
    answer = kafka.call(offset_fetch, asked, version)

    (told,) = answer.groups[0].topics if version >= 8 else answer.topics
    assert [(each.partition_index, each.committed_offset) for each in told.partitions] == [(0, 3), (1, -1)]


def test_offsets_are_deleted_only_when_nobody_is_in_the_group(kafka: Kafka, group: str, topic: str) -> None:
    member_id, _ = member_of(kafka, group)
    request = offset_delete.OffsetDeleteRequest(
        group_id=group,
        topics=[
            offset_delete.OffsetDeleteRequestTopic(
                name=topic, partitions=[offset_delete.OffsetDeleteRequestPartition(partition_index=0)]
            )
        ],
    )
    refused = kafka.call(offset_delete, request, 0)
    assert refused.error_code in (ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE)
    kafka.call(leave_group, leave_group.LeaveGroupRequest(group_id=group, member_id=member_id), 2)
    answer = kafka.call(offset_delete, request, 0)
    assert answer.error_code == ErrorCode.NONE
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", versions(consumer_group_heartbeat))
def test_a_member_of_the_newer_protocol_is_assigned_here(kafka: Kafka, group: str, topic: str, version: int) -> None:
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=str(uuid4()),
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    answer = kafka.call(consumer_group_heartbeat, request, version)
    assert answer.error_code == ErrorCode.NONE
    assert answer.member_epoch > 0
    assert answer.assignment is not None
    described = kafka.call(
        consumer_group_describe,
        consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group, "not-there"]),
        min(version, consumer_group_describe.MAX_VERSION),
    )
    ours, other = described.groups
    assert len(ours.members) == 1
    assert other.error_code == ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", versions(leave_group))
def test_an_administrator_removes_members_of_the_newer_protocol(kafka: Kafka, group: str, version: int) -> None:
    for member_id, instance_id in (("a", None), ("b", "i"), ("c", None)):
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            instance_id=instance_id,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=["t"],
            topic_partitions=[],
        )
        assert kafka.call(consumer_group_heartbeat, request, 1).error_code == ErrorCode.NONE

    batched = version >= 3
    named = [("a", None), ("", "i"), ("nobody", None)] if batched else [("a", None)]
    answer = kafka.call(
        leave_group,
        leave_group.LeaveGroupRequest(
            group_id=group,
            member_id="" if batched else "a",
            members=[leave_group.MemberIdentity(member_id=one, group_instance_id=i) for one, i in named if batched],
        ),
        version,
    )
    assert answer.error_code == ErrorCode.NONE
    if batched:
        assert [(one.member_id, one.group_instance_id, one.error_code) for one in answer.members] == [
            ("a", None, ErrorCode.NONE),
            ("", "i", ErrorCode.NONE),
            ("nobody", None, ErrorCode.UNKNOWN_MEMBER_ID),
        ]
    described = kafka.call(
        consumer_group_describe, consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group]), 0
    )
    assert [member.member_id for member in described.groups[0].members] == (["c"] if batched else ["b", "c"])


def test_who_subscribes_by_a_pattern_that_is_none_hears_what_is_wrong_with_it(kafka: Kafka, group: str) -> None:
    def subscribe(pattern: str) -> tuple[int, str | None]:
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="m", rebalance_timeout_ms=10_000, subscribed_topic_regex=pattern
        )
        answer = kafka.call(consumer_group_heartbeat, request, 1)
        return answer.error_code, answer.error_message

    assert subscribe(r"orders\p{Klingon}") == (
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        r"the topic pattern 'orders\p{Klingon}' has an unknown Unicode class '\p{Klingon}' at character 7",
    )
    assert subscribe(r"\Qorders.\E\pL+") == (ErrorCode.NONE, None)


def test_who_joins_with_the_newer_protocol_hears_that_members_are_there_that_are_no_consumers(
    kafka: Kafka, group: str
) -> None:
    member_of(kafka, group)
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=str(uuid4()), rebalance_timeout_ms=10_000, subscribed_topic_names=["t"]
    )

    answer = kafka.call(consumer_group_heartbeat, request, 1)

    assert answer.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert (
        answer.error_message
        == "classic members that are no consumers, or name too many topics, are in this group: stop them first"
    )


@pytest.mark.parametrize(("topics", "code"), [(1, ErrorCode.NONE), (1_500_000, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)])
def test_who_joins_the_newer_protocols_group_names_no_more_topics_than_a_request_may(
    kafka: Kafka, group: str, topics: int, code: ErrorCode
) -> None:
    newer = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id=group, member_id=str(uuid4()), rebalance_timeout_ms=10_000, subscribed_topic_names=["t"]
    )
    assert kafka.call(consumer_group_heartbeat, newer, 1).error_code == ErrorCode.NONE
    metadata = b"\0\0" + topics.to_bytes(4, "big") + b"\0\0" * topics + b"\xff" * 4

    told = join(kafka, group, metadata=metadata)
    if told.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        told = join(kafka, group, member_id=told.member_id, metadata=metadata)

    assert told.error_code == code


def test_offsets_of_a_group_whose_subscriptions_cannot_be_read_are_kept(kafka: Kafka, group: str, topic: str) -> None:
    """As in Kafka: it may read every topic."""
    member_of(kafka, group)
    partition = offset_delete.OffsetDeleteRequestPartition(partition_index=0)
    topics = [offset_delete.OffsetDeleteRequestTopic(name=topic, partitions=[partition])]

    answer = kafka.call(offset_delete, offset_delete.OffsetDeleteRequest(group_id=group, topics=topics), 0)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


@pytest.mark.parametrize("version", versions(join_group))
def test_members_of_both_protocols_share_a_group(kafka: Kafka, group: str, topic: str, version: int) -> None:
    """A classic member joins in any version, a newer one makes it a group of its own kind, and leaves again."""
    subscription = subscriptions.ConsumerProtocolSubscription(topics=[topic])
    metadata = b"\x00\x00" + b"".join(subscriptions.encode(subscription, 0))
    synced_since = {0: 0, 1: 0, 2: 1, 3: 2, 4: 2}.get(version, 3)

    def join_classic(member_id: str = "") -> join_group.JoinGroupResponse:
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=metadata)],
        )
        answer = kafka.call(join_group, request, version)
        return join_classic(answer.member_id) if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED else answer

    def beat_newer(epoch: int, owned: list[int] | None = None) -> ConsumerGroupHeartbeatResponse:
        request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id="newer",
            member_epoch=epoch,
            rebalance_timeout_ms=10_000 if epoch == 0 else -1,
            subscribed_topic_names=[topic] if epoch == 0 else None,
            topic_partitions=None
            if owned is None
            else [consumer_group_heartbeat.TopicPartitions(topic_id=topic_id, partitions=owned) for topic_id in ids],
        )
        answer = kafka.call(consumer_group_heartbeat, request, 1)
        assert answer.error_code == ErrorCode.NONE
        return answer

    def sync_classic(joined: join_group.JoinGroupResponse, share: bytes | None = None) -> sync_group.SyncGroupResponse:
        assignments = [sync_group.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=share or b"")]
        request = sync_group.SyncGroupRequest(
            group_id=group,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            assignments=assignments if share is not None else [],
        )
        return kafka.call(sync_group, request, synced_since)

    def owned_by(synced: sync_group.SyncGroupResponse) -> list[int]:
        return sorted(at for _, at in KafkaEmbeddedProtocol().read_assignment(bytes(synced.assignment)))

    def beat_classic(joined: join_group.JoinGroupResponse) -> int:
        request = heartbeat.HeartbeatRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id
        )
        return kafka.call(heartbeat, request, min(version, 4)).error_code

    ids: list[UUID] = []
    joined = join_classic()
    everything = KafkaEmbeddedProtocol().write_assignment([(topic, 0), (topic, 1)], metadata)
    assert owned_by(sync_classic(joined, everything)) == [0, 1]

    newer = beat_newer(0, [])
    assert newer.assignment is not None
    assert newer.assignment.topic_partitions == [], "the other one has everything"
    assert beat_classic(joined) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = join_classic(joined.member_id)
    assert (joined.error_code, joined.leader, joined.generation_id) == (ErrorCode.NONE, "", newer.member_epoch)
    (kept,) = owned_by(sync_classic(joined))
    newer = beat_newer(newer.member_epoch, [])
    assert newer.assignment is not None
    ((given,),) = [one.partitions for one in newer.assignment.topic_partitions]
    assert sorted([kept, given]) == [0, 1]
    ids.append(newer.assignment.topic_partitions[0].topic_id)
    assert beat_classic(joined) == ErrorCode.NONE
    described = kafka.call(
        consumer_group_describe, consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[group]), 1
    )
    types = {member.member_id: member.member_type for member in described.groups[0].members}
    assert types == {joined.member_id: 0, "newer": 1}

    beat_newer(-1)
    assert beat_classic(joined) == ErrorCode.REBALANCE_IN_PROGRESS
    again = join_classic(joined.member_id)
    assert (again.leader, again.generation_id) == (again.member_id, joined.generation_id + 1), "a classic group again"


@pytest.mark.parametrize("asks", [True, False])
def test_who_asks_what_is_allowed_in_a_group_hears_of_all_that_there_is(kafka: Kafka, group: str, asks: bool) -> None:
    member_of(kafka, group)
    request = describe_groups.DescribeGroupsRequest(groups=[group], include_authorized_operations=asks)

    (answer,) = kafka.call(describe_groups, request, 5).groups

    assert answer.authorized_operations == (328 if asks else -(2**31))


@pytest.mark.parametrize("group_id", ["", "nul\0", "x" * 250])
def test_a_name_that_is_no_group_is_refused_everywhere(kafka: Kafka, group_id: str) -> None:
    assert join(kafka, group_id).error_code == ErrorCode.INVALID_GROUP_ID
    beat = heartbeat.HeartbeatRequest(group_id=group_id, generation_id=1, member_id="m")
    assert kafka.call(heartbeat, beat, 4).error_code == ErrorCode.INVALID_GROUP_ID
    assert kafka.call(sync_group, sync_group.SyncGroupRequest(group_id=group_id), 5).error_code == (
        ErrorCode.INVALID_GROUP_ID
    )
    newer = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(group_id=group_id, member_id="m")
    assert kafka.call(consumer_group_heartbeat, newer, 1).error_code == ErrorCode.INVALID_GROUP_ID
