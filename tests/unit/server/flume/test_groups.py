"""Consumer groups through the Flume port, as bytes on a socket."""

from __future__ import annotations

from collections.abc import Iterator

import confluent_kafka
import pytest

from flume_parts import raw
from flume_parts.members import Member, share
from flume_parts.raw import RawFlume
from log_parts.kafka import Kafka
from node.wait import HUNG_SECONDS, eventually
from streamhouse.testing import Broker
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import offset_commit


@pytest.fixture
def other(broker: Broker) -> Iterator[RawFlume]:
    with RawFlume(broker.flume_address) as other:
        yield other


@pytest.fixture
def written(flume: RawFlume, topic: str) -> str:
    """A topic with one record in each of its three partitions."""
    for partition in range(3):
        assert flume.produce(topic, b"x", partition=partition)[2] == raw.NONE
    return topic


def test_a_first_member_leads_itself_and_gets_all_partitions(flume: RawFlume, written: str) -> None:
    member = Member(flume, "first", written)
    assert member.leader == member.member_id
    assert member.members == [member.member_id]
    assert member.generation > 0
    assert member.partitions() == [0, 1, 2]
    assert member.beat() == raw.NONE


def test_a_second_member_makes_the_first_join_again_and_partitions_are_divided_by_range(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    first = Member(flume, "second", written)
    before = first.generation
    second = Member(other, "second", written)
    assert sorted([first.member_id, second.member_id]) == second.members
    assert second.leader == second.members[0]
    shares = share(first, second)
    assert sorted(map(len, shares)) == [1, 2]
    assert all(part == list(range(part[0], part[0] + len(part))) for part in shares)
    assert first.generation > before
    assert first.flume.heartbeat("second", before, first.member_id) == raw.STALE_GENERATION
    assert flume.assignment("second", before, first.member_id)[0] == raw.STALE_GENERATION


def test_a_member_that_leaves_or_hangs_up_leaves_its_partitions_to_the_others(
    broker: Broker, flume: RawFlume, written: str
) -> None:
    first = Member(flume, "leaving", written)
    with RawFlume(broker.flume_address) as second_connection:
        second = Member(second_connection, "leaving", written)
        share(first, second)
        assert second_connection.leave("leaving", second.member_id) == raw.NONE
        assert second_connection.leave("leaving", second.member_id) == raw.UNKNOWN_MEMBER
        assert share(first) == [[0, 1, 2]]
        share(first, Member(second_connection, "leaving", written))
    assert share(first) == [[0, 1, 2]]


def test_a_member_that_goes_silent_is_expelled_and_may_not_commit(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    silent = Member(flume, "silent", written, session_ms=300)
    lively = Member(other, "silent", written)
    assert share(lively) == [[0, 1, 2]]
    assert flume.heartbeat("silent", silent.generation, silent.member_id) == raw.UNKNOWN_MEMBER
    assert flume.commit("silent", written, 0, 1) == raw.UNKNOWN_MEMBER
    assert flume.join("silent", [written], member_id=silent.member_id)[0] == raw.UNKNOWN_MEMBER
    assert other.leave("silent", lively.member_id) == raw.NONE
    # Nor when nobody is left: it was one of them, and the group has gone on without it.
    assert flume.commit("silent", written, 0, 1) == raw.UNKNOWN_MEMBER


def test_a_commit_is_its_members_and_of_what_it_holds(flume: RawFlume, other: RawFlume, written: str) -> None:
    assert flume.committed("commits", written, 0) == (raw.NONE, -1)
    first, second = Member(flume, "commits", written), Member(other, "commits", written)
    mine, theirs = share(first, second)
    assert flume.commit("commits", written, mine[0], 1) == raw.NONE
    assert flume.commit("commits", written, theirs[0], 1) == raw.STALE_GENERATION
    assert other.committed("commits", written, mine[0]) == (raw.NONE, 1)
    assert other.committed("commits", written, theirs[0]) == (raw.NONE, -1)


def test_a_stranger_may_commit_only_while_the_group_has_no_members(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    assert other.commit("strangers", written, 0, 1) == raw.NONE
    member = Member(flume, "strangers", written)
    assert other.commit("strangers", written, 0, 0) == raw.UNKNOWN_MEMBER
    assert flume.leave("strangers", member.member_id) == raw.NONE
    assert other.commit("strangers", written, 0, 0) == raw.NONE
    assert flume.committed("strangers", written, 0) == (raw.NONE, 0)


def test_a_member_may_change_what_it_reads(flume: RawFlume, written: str) -> None:
    flume.produce(written + "-more", b"x")
    member = Member(flume, "changes", written)
    code, generation, _, member_id, _ = flume.join("changes", [written + "-more"], member_id=member.member_id)
    assert (code, member_id) == (raw.NONE, member.member_id)
    assert flume.assignment("changes", generation, member_id) == (raw.NONE, [(written + "-more", p) for p in range(3)])


@pytest.mark.parametrize(
    ("group", "topics", "session_ms"), [("", ["t"], 1000), ("g", [], 1000), ("g", ["t"], 0), ("g", ["t"], -1)]
)
def test_a_join_that_makes_no_sense_is_refused(flume: RawFlume, group: str, topics: list[str], session_ms: int) -> None:
    assert flume.join(group, topics, session_ms=session_ms) == (raw.UNKNOWN, -1, "", "", [])


def test_a_join_that_is_refused_leaves_no_member_behind(flume: RawFlume, other: RawFlume, written: str) -> None:
    """The group has taken it by the time that a topic of it turns out to have no possible name."""
    assert flume.join("half", [written, "no/topic"])[0] == raw.UNKNOWN
    member = Member(other, "half", written)
    assert member.members == [member.member_id]
    assert member.partitions() == [0, 1, 2]


def test_members_and_partitions_that_are_not_there_are_told_so(flume: RawFlume, written: str) -> None:
    assert flume.heartbeat("nobody", 1, "me") == raw.UNKNOWN_MEMBER
    assert flume.leave("nobody", "me") == raw.UNKNOWN_MEMBER
    assert flume.assignment("nobody", 1, "me") == (raw.UNKNOWN_MEMBER, [])
    assert flume.join("nobody", [written], member_id="me")[0] == raw.UNKNOWN_MEMBER
    assert flume.commit("nobody", "no-such-topic", 0, 1) == raw.TOPIC_NOT_FOUND
    assert flume.commit("nobody", written, 7, 1) == raw.TOPIC_NOT_FOUND
    assert flume.commit("nobody", written, 0, -1) == raw.OFFSET_OUT_OF_RANGE


def test_kafka_goes_on_where_flume_has_committed(broker: Broker, flume: RawFlume, written: str) -> None:
    flume.produce(written, b"second", partition=0)
    member = Member(flume, "doors", written)
    for partition in range(3):
        assert flume.commit("doors", written, partition, 1) == raw.NONE
    assert flume.leave("doors", member.member_id) == raw.NONE
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "doors", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([written])
    assert [message.value() for message in consumer.consume(1, HUNG_SECONDS)] == [b"second"]
    consumer.close()


def test_an_offset_below_0_that_some_kafka_client_committed_is_no_commit(
    kafka: Kafka, flume: RawFlume, written: str
) -> None:
    reset = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=-2)
    request = offset_commit.OffsetCommitRequest(
        group_id="reset", topics=[offset_commit.OffsetCommitRequestTopic(name=written, partitions=[reset])]
    )
    assert kafka.call(offset_commit, request, 5).topics[0].partitions[0].error_code == ErrorCode.NONE
    assert flume.committed("reset", written, 0) == (raw.NONE, -1)


def test_a_connection_that_is_gone_leaves_nothing_behind(broker: Broker, topic: str) -> None:
    assert broker.node.doors.flume is not None
    tasks = broker.node.doors.flume._tasks
    eventually(lambda: len(tasks) == 0, "what earlier tests left to do")
    with RawFlume(broker.flume_address) as flume:
        flume.produce(topic, b"x")
        for group in ("nothing-1", "nothing-2"):
            Member(flume, group, topic)
        eventually(lambda: len(tasks) == 2, "one task for each session")
    eventually(lambda: len(tasks) == 0, "sessions that are over")
