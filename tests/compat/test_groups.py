"""Groups of real clients: who owns what, where a group goes on, and what members that are too late are told."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import confluent_kafka
import kafka
import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from compat.conftest import Broker, NewTopicName, unused_name
from group_members.member import CLASSIC_KINDS, KINDS, LONG_SESSION_MS, Member, wait_for_one_owner_each
from log_parts.kafka import Kafka
from node.process import Node
from node.wait import HUNG_SECONDS, eventually
from streamhouse.wire.kafka.messages import heartbeat, join_group, offset_commit, sync_group

PARTITIONS = 6
ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 22, 25, 27, 79
FENCED_INSTANCE_ID = 82
JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION, COMMIT_VERSION = 7, 5, 4, 8

Join = Callable[..., Member]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A node that does not wait long for a new group's members. `KAFKA_BOOTSTRAP` puts another broker in its place."""
    elsewhere = os.environ.get("KAFKA_BOOTSTRAP")
    if elsewhere:
        yield Broker(bootstrap=elsewhere)
        return
    with Node(tmp_path_factory.mktemp("node"), "--group-initial-rebalance-delay", "200ms") as node:
        yield Broker(bootstrap=node.bootstrap)


@pytest.fixture
def topic(new_topic: NewTopicName) -> str:
    return new_topic(PARTITIONS)


@pytest.fixture
def group() -> str:
    return unused_name()


@pytest.fixture
def join(broker: Broker, group: str, topic: str) -> Iterator[Join]:
    """Starts a member of the test's group; whoever still runs ends with the test."""
    with ExitStack() as running:

        def start(kind: str, **options: Any) -> Member:
            return running.enter_context(Member(kind, broker.bootstrap, group, topic, **options))

        yield start


def produce(broker: Broker, topic: str, numbers: range) -> list[str]:
    """One record for each number, in turn to every partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
    for number in numbers:
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(HUNG_SECONDS) == 0, "records were never acknowledged"
    return [str(number) for number in numbers]


def committed_total(admin: AdminClient, group: str) -> int:
    """How many records of a group's partitions are committed, when all began at 0."""
    asked = ConsumerGroupTopicPartitions(group)
    answer = admin.list_consumer_group_offsets([asked])[group].result(HUNG_SECONDS)
    return sum(at.offset for at in answer.topic_partitions if at.offset > 0)


def describe(admin: AdminClient, group: str) -> ConsumerGroupDescription:
    return admin.describe_consumer_groups([group], request_timeout=HUNG_SECONDS)[group].result(HUNG_SECONDS)


def described_owners(admin: AdminClient, group: str) -> list[int]:
    """The partition of every assignment of every member."""
    members = describe(admin, group).members
    return sorted(at.partition for member in members for at in member.assignment.topic_partitions)


def error_of(failure: pytest.ExceptionInfo[KafkaException]) -> int:
    return int(failure.value.args[0].code())


# -- reading and going on -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_subscriber_reads_everything_and_the_next_one_goes_on_from_its_commit(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join, kind: str
) -> None:
    first_values = produce(broker, topic, range(60))
    first = join(kind)
    eventually(lambda: len(first.values) >= 60, "everything that was produced")
    eventually(lambda: committed_total(admin, group) == 60, "the commit of everything")
    first.leave()
    assert sorted(first.values) == sorted(first_values)
    second_values = produce(broker, topic, range(60, 120))
    second = join(kind)
    eventually(lambda: len(second.values) >= 60, "everything that was produced since")
    eventually(lambda: committed_total(admin, group) == 120, "the commit of everything")
    second.leave()
    assert sorted(second.values) == sorted(second_values), "neither less nor what was committed before"


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_leaves_gives_its_partitions_to_those_who_stay(
    admin: AdminClient, group: str, join: Join, kind: str
) -> None:
    stays, leaves = join(kind), join(kind)
    wait_for_one_owner_each([stays, leaves], PARTITIONS)
    assert described_owners(admin, group) == list(range(PARTITIONS))
    leaves.leave()
    wait_for_one_owner_each([stays], PARTITIONS)
    assert len(describe(admin, group).members) == 1


def test_clients_of_every_kind_share_the_partitions_of_one_group(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join
) -> None:
    members = [join(kind) for kind in CLASSIC_KINDS]
    wait_for_one_owner_each(members, PARTITIONS)
    assert all(len(member.owned) == 2 for member in members)
    values = produce(broker, topic, range(120))
    eventually(lambda: sum(len(member.values) for member in members) >= 120, "everything that was produced")
    eventually(lambda: committed_total(admin, group) == 120, "the commit of everything")
    seen = [value for member in members for value in member.values]
    assert sorted(seen) == sorted(values), "in a stable group everything is read once"
    assert described_owners(admin, group) == list(range(PARTITIONS))
    assert not any(member.refusals for member in members)


# -- membership ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSIC_KINDS)
def test_a_static_member_that_restarts_gets_its_partitions_back_and_nobody_else_notices(
    admin: AdminClient, group: str, join: Join, kind: str
) -> None:
    stays = join(kind, instance_id="first", session_ms=LONG_SESSION_MS)
    restarts = join(kind, instance_id="second", session_ms=LONG_SESSION_MS)
    wait_for_one_owner_each([stays, restarts], PARTITIONS)
    kept, moved = stays.owned, restarts.owned
    revocations = len(stays.revoked)
    restarts.crash()
    again = join(kind, instance_id="second", session_ms=LONG_SESSION_MS)
    eventually(lambda: again.owned == moved, "the same partitions as before")
    assert stays.owned == kept
    assert len(stays.revoked) == revocations, "no rebalance"
    assert described_owners(admin, group) == list(range(PARTITIONS))


def test_a_cooperative_group_takes_a_member_in_without_stopping_the_others(
    broker: Broker, topic: str, join: Join
) -> None:
    first = join("confluent", assignor="cooperative-sticky")
    wait_for_one_owner_each([first], PARTITIONS)
    second = join("confluent", assignor="cooperative-sticky")
    wait_for_one_owner_each([first, second], PARTITIONS)
    assert len(first.owned) == len(second.owned) == 3
    given_up = frozenset[int]().union(*first.revoked)
    assert given_up == second.owned, "only what moved was ever revoked"
    values = produce(broker, topic, range(60))
    eventually(lambda: len(first.values) + len(second.values) >= 60, "everything that was produced")
    assert sorted(first.values + second.values) == sorted(values)


@pytest.mark.parametrize("kind", CLASSIC_KINDS)
def test_a_member_that_vanishes_is_removed_after_its_session(
    admin: AdminClient, group: str, join: Join, kind: str
) -> None:
    stays, vanishes = join(kind), join(kind)
    wait_for_one_owner_each([stays, vanishes], PARTITIONS)
    vanishes.crash()
    assert len(describe(admin, group).members) == 2, "a lost connection alone ends no membership"
    wait_for_one_owner_each([stays], PARTITIONS)
    assert len(describe(admin, group).members) == 1


def test_a_member_that_was_paused_beyond_its_session_comes_back_as_a_new_one(join: Join) -> None:
    stays, sleeps = join("confluent"), join("confluent")
    wait_for_one_owner_each([stays, sleeps], PARTITIONS)
    sleeps.pause()
    wait_for_one_owner_each([stays], PARTITIONS)
    sleeps.resume()
    wait_for_one_owner_each([stays, sleeps], PARTITIONS)


# -- requests by hand: what members that are too late are told ------------------------------------------------------


def joined(connection: Kafka, group: str, member_id: str = "", instance_id: str | None = None) -> tuple[str, int]:
    """Joins, for a new member in the two steps that Kafka asks for; returns its id and generation."""

    def ask(member_id: str) -> join_group.JoinGroupResponse:
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            member_id=member_id,
            group_instance_id=instance_id,
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        answer = connection.call(join_group, request, JOIN_VERSION)
        assert isinstance(answer, join_group.JoinGroupResponse)
        return answer

    answer = ask(member_id)
    if not member_id and instance_id is None:
        assert answer.error_code == MEMBER_ID_REQUIRED
        answer = ask(answer.member_id)
    assert answer.error_code == 0
    return answer.member_id, answer.generation_id


def synced(connection: Kafka, group: str, member_id: str, generation: int) -> int:
    request = sync_group.SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[sync_group.SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")],
    )
    return int(connection.call(sync_group, request, SYNC_VERSION).error_code)


def commit_code(
    connection: Kafka, group: str, topic: str, member_id: str, generation: int, instance_id: str | None = None
) -> int:
    partition = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=7)
    request = offset_commit.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        group_instance_id=instance_id,
        topics=[offset_commit.OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    answer = connection.call(offset_commit, request, COMMIT_VERSION)
    return int(answer.topics[0].partitions[0].error_code)


def heartbeat_code(connection: Kafka, group: str, member_id: str, generation: int) -> int:
    request = heartbeat.HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    return int(connection.call(heartbeat, request, HEARTBEAT_VERSION).error_code)


def test_a_commit_of_another_generation_or_of_a_stranger_is_refused_and_leaves_nothing(
    broker: Broker, admin: AdminClient, group: str, topic: str
) -> None:
    with Kafka(broker.bootstrap) as connection:
        member_id, old = joined(connection, group)
        assert synced(connection, group, member_id, old) == 0
        member_id, generation = joined(connection, group, member_id)
        assert generation == old + 1
        assert synced(connection, group, member_id, generation) == 0
        assert commit_code(connection, group, topic, member_id, old) == ILLEGAL_GENERATION
        assert commit_code(connection, group, topic, member_id, generation + 1) == ILLEGAL_GENERATION
        assert commit_code(connection, group, topic, "a stranger", generation) == UNKNOWN_MEMBER_ID
        assert commit_code(connection, group, topic, "", -1) == UNKNOWN_MEMBER_ID, "nor a consumer without a group"
        assert committed_total(admin, group) == 0
        assert commit_code(connection, group, topic, member_id, generation) == 0
        assert committed_total(admin, group) == 7


def test_heartbeats_tell_who_is_late_and_that_the_group_forms_again(broker: Broker, group: str, topic: str) -> None:
    with Kafka(broker.bootstrap) as connection, Kafka(broker.bootstrap) as other:
        member_id, generation = joined(connection, group)
        assert synced(connection, group, member_id, generation) == 0
        assert heartbeat_code(connection, group, member_id, generation) == 0
        assert heartbeat_code(connection, group, member_id, generation - 1) == ILLEGAL_GENERATION
        assert heartbeat_code(connection, group, "a stranger", generation) == UNKNOWN_MEMBER_ID
        request = join_group.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            group_instance_id="newcomer",
            protocol_type="consumer",
            protocols=[join_group.JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        other.send(join_group, request, JOIN_VERSION)
        eventually(
            lambda: heartbeat_code(connection, group, member_id, generation) == REBALANCE_IN_PROGRESS,
            "word of the newcomer",
        )
        assert commit_code(connection, group, topic, member_id, generation) == 0, "what was read may still be committed"
        member_id, next_generation = joined(connection, group, member_id)
        assert next_generation == generation + 1
        assert other.receive().generation_id == next_generation
        assert commit_code(connection, group, topic, member_id, next_generation) == REBALANCE_IN_PROGRESS


def test_the_earlier_process_of_a_static_member_is_fenced(broker: Broker, group: str, topic: str) -> None:
    with Kafka(broker.bootstrap) as connection:
        earlier, generation = joined(connection, group, instance_id="one")
        assert synced(connection, group, earlier, generation) == 0
        later, generation = joined(connection, group, instance_id="one")
        assert later != earlier
        assert commit_code(connection, group, topic, earlier, generation, "one") == FENCED_INSTANCE_ID
        assert commit_code(connection, group, topic, later, generation, "one") == 0


# -- administration ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_admins_list_describe_and_delete_a_group(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join, kind: str
) -> None:
    def listed() -> dict[str, ConsumerGroupState]:
        found = admin.list_consumer_groups(request_timeout=HUNG_SECONDS).result(HUNG_SECONDS)
        assert not found.errors
        return {one.group_id: one.state for one in found.valid}

    produce(broker, topic, range(PARTITIONS))
    member = join(kind)
    eventually(lambda: committed_total(admin, group) == PARTITIONS, "the commit of everything")
    assert listed()[group] is ConsumerGroupState.STABLE
    description = describe(admin, group)
    assert description.state is ConsumerGroupState.STABLE
    (described,) = description.members
    assert {(at.topic, at.partition) for at in described.assignment.topic_partitions} == {
        (topic, number) for number in range(PARTITIONS)
    }
    with pytest.raises(KafkaException) as refusal:
        admin.delete_consumer_groups([group])[group].result(HUNG_SECONDS)
    assert error_of(refusal) == KafkaError.NON_EMPTY_GROUP
    member.leave()
    eventually(lambda: listed()[group] is ConsumerGroupState.EMPTY, "an empty group")
    admin.delete_consumer_groups([group])[group].result(HUNG_SECONDS)
    assert group not in listed()
    assert committed_total(admin, group) == 0
    with pytest.raises(KafkaException) as refusal:
        admin.delete_consumer_groups([group])[group].result(HUNG_SECONDS)
    assert error_of(refusal) == KafkaError.GROUP_ID_NOT_FOUND


def test_offsets_that_an_admin_sets_are_where_the_group_goes_on(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join
) -> None:
    produce(broker, topic, range(60))
    changed = [TopicPartition(topic, number, 9) for number in range(PARTITIONS)]
    request = ConsumerGroupTopicPartitions(group, changed)
    answer = admin.alter_consumer_group_offsets([request])[group].result(HUNG_SECONDS)
    assert all(at.error is None for at in answer.topic_partitions)
    member = join("confluent")
    eventually(lambda: len(member.values) >= PARTITIONS, "the last record of each partition")
    eventually(lambda: committed_total(admin, group) == 60, "the commit of everything")
    refused = admin.alter_consumer_group_offsets([request])[group].result(HUNG_SECONDS)
    codes = {at.error.code() if at.error is not None else 0 for at in refused.topic_partitions}
    assert codes == {KafkaError.UNKNOWN_MEMBER_ID}, "not under the hands of its members"
    assert committed_total(admin, group) == 60
    assert sorted(member.values, key=int) == [str(number) for number in range(54, 60)]


@pytest.mark.parametrize("kind", ["confluent", "consumer-protocol"])
def test_offsets_are_deleted_one_by_one_unless_somebody_reads_there(
    broker: Broker, admin: AdminClient, group: str, topic: str, join: Join, kind: str
) -> None:
    def delete(partition: int) -> str:
        client = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        try:
            answer = client.delete_group_offsets(group, [kafka.TopicPartition(topic, partition)])
            (error,) = answer.values()
            return str(getattr(error, "__name__", type(error).__name__))
        finally:
            client.close()

    produce(broker, topic, range(60))
    member = join(kind)
    eventually(lambda: committed_total(admin, group) == 60, "the commit of everything")
    assert delete(0) == "GroupSubscribedToTopicError"
    assert committed_total(admin, group) == 60
    member.leave()
    assert delete(0) == "NoError"
    assert committed_total(admin, group) == 50
