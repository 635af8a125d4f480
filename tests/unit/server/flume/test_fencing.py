"""A connection that joined a group reads what the group has given it, and nothing once that has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from flume_parts import raw
from flume_parts.members import HOUR_MS, Member, remove, share
from flume_parts.raw import RawFlume
from log_parts.kafka import Kafka
from node.wait import HUNG_SECONDS, eventually
from streamhouse.objects.faulty import Operation
from streamhouse.testing import Broker

REFUSED: tuple[int, list[tuple[int, bytes]]] = (raw.STALE_GENERATION, [])
RECORD = (raw.NONE, [(0, b"x")])


@pytest.fixture
def other(broker: Broker) -> Iterator[RawFlume]:
    with RawFlume(broker.flume_address) as other:
        yield other


@pytest.fixture
def written(flume: RawFlume, topic: str) -> str:
    """A topic with one record in each of its three partitions."""
    return write(flume, topic)


def write(flume: RawFlume, topic: str) -> str:
    for partition in range(3):
        assert flume.produce(topic, b"x", partition=partition)[2] == raw.NONE
    return topic


def readable(member: Member) -> list[int]:
    """The partitions that its connection is given records of; the others are refused as stale."""
    fetched = {partition: member.flume.fetch(member.topic, partition, 0) for partition in range(3)}
    assert all(answer in (RECORD, REFUSED) for answer in fetched.values()), fetched
    return [partition for partition, answer in fetched.items() if answer == RECORD]


def test_a_connection_that_never_joined_reads_everything(flume: RawFlume, other: RawFlume, written: str) -> None:
    Member(other, "free", written)
    assert [flume.fetch(written, partition, 0) for partition in range(3)] == [RECORD] * 3


def test_a_member_reads_what_it_was_given_and_no_more(flume: RawFlume, other: RawFlume, written: str) -> None:
    first, second = Member(flume, "given", written), Member(other, "given", written)
    shares = share(first, second)
    assert [readable(first), readable(second)] == shares
    assert flume.fetch(written, 7, 0)[0] == raw.TOPIC_NOT_FOUND
    assert flume.fetch("no-such-topic", 0, 0)[0] == raw.TOPIC_NOT_FOUND


def test_a_member_that_goes_silent_reads_nothing_when_it_is_back(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    paused = Member(flume, "paused", written, session_ms=300)
    lively = Member(other, "paused", written)
    assert share(lively) == [[0, 1, 2]]
    assert readable(paused) == []
    assert readable(lively) == [0, 1, 2]
    assert flume.heartbeat("paused", paused.generation, paused.member_id) == raw.UNKNOWN_MEMBER
    assert readable(paused) == [], "to have been told does not make it a stranger"
    again = Member(flume, "paused", written)
    assert again.member_id != paused.member_id
    shares = share(again, lively)
    assert [readable(again), readable(lively)] == shares


def test_the_first_fetch_after_a_pause_of_the_whole_node_is_refused() -> None:
    with Broker(flume=True) as broker, RawFlume(broker.flume_address) as flume:
        member = Member(flume, "asleep", write(flume, "asleep"), session_ms=20_000)
        assert readable(member) == [0, 1, 2]
        broker.faults.pass_time(20_000)
        assert flume.fetch(member.topic, 0, 0) == REFUSED


def test_from_being_told_of_a_rebalance_until_it_joins_again_a_member_commits_and_does_not_read(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    first = Member(flume, "moving", written)
    second = Member(other, "moving", written)
    assert readable(second) == [], "nothing is its own before the first has given it up"
    assert readable(first) == [0, 1, 2]
    eventually(
        lambda: flume.heartbeat("moving", first.generation, first.member_id) == raw.REBALANCE_NEEDED,
        "the group to divide its partitions",
    )
    assert readable(first) == []
    assert [flume.commit("moving", written, partition, 1) for partition in range(3)] == [raw.NONE] * 3
    first.join()
    assert readable(first) == first.partitions() != []
    shares = share(first, second)
    assert [readable(first), readable(second)] == shares


def test_a_member_that_was_removed_reads_nothing_from_its_next_heartbeat_on(
    kafka: Kafka, flume: RawFlume, other: RawFlume, written: str
) -> None:
    member = Member(flume, "removed", written)
    remove(kafka, member.group, member.member_id)
    assert member.beat() == raw.UNKNOWN_MEMBER
    assert readable(member) == []
    assert share(Member(other, "removed", written)) == [[0, 1, 2]]


def test_a_refused_commit_tells_of_a_removal_too(kafka: Kafka, flume: RawFlume, written: str) -> None:
    member = Member(flume, "refused", written)
    remove(kafka, member.group, member.member_id)
    assert flume.commit("refused", written, 0, 1) == raw.UNKNOWN_MEMBER
    assert readable(member) == []


def test_a_member_that_was_removed_joins_as_a_new_one(kafka: Kafka, flume: RawFlume, written: str) -> None:
    """Else it would go on in partitions that were others' meanwhile, from where it was in them."""
    member = Member(flume, "again", written)
    remove(kafka, member.group, member.member_id)
    assert flume.join("again", [written], member_id=member.member_id)[0] == raw.UNKNOWN_MEMBER
    assert readable(member) == []
    assert readable(Member(flume, "again", written)) == [0, 1, 2]


def test_other_topics_are_read_as_by_anybody(flume: RawFlume, written: str) -> None:
    more = write(flume, written + "-more")
    member = Member(flume, "topics", written, session_ms=300)
    assert flume.fetch(more, 0, 0) == RECORD
    eventually(lambda: readable(member) == [], "the end of its session")
    assert flume.fetch(more, 0, 0) == RECORD


def test_a_member_that_joins_again_for_another_topic_cannot_read_on_in_what_others_have(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    more = write(flume, written + "-more")
    stale, lively = Member(flume, "elsewhere", written), Member(other, "elsewhere", written)
    assert flume.join("elsewhere", [more], member_id=stale.member_id)[0] == raw.NONE
    assert share(lively) == [[0, 1, 2]]
    assert readable(stale) == []
    assert flume.leave("elsewhere", stale.member_id) == raw.NONE
    assert readable(stale) == [0, 1, 2]


def test_nor_does_one_that_was_expelled_and_joins_anew_for_another_topic(
    flume: RawFlume, other: RawFlume, written: str
) -> None:
    more = write(flume, written + "-more")
    expelled = Member(flume, "anew", written, session_ms=300)
    eventually(lambda: readable(expelled) == [], "the end of its session")
    assert share(Member(other, "anew", written)) == [[0, 1, 2]]
    anew = Member(flume, "anew", more)
    assert readable(anew) == [0, 1, 2]
    assert readable(expelled) == []


def test_the_topics_of_one_membership_are_bounded(flume: RawFlume, topic: str) -> None:
    joined = flume.join("bounded", [topic])
    many = [f"{number:x}" for number in range(32_767)]
    assert flume.join("bounded", many, member_id=joined[3])[0] == raw.UNKNOWN
    assert flume.heartbeat("bounded", joined[1], joined[3]) == raw.NONE


def test_who_leaves_is_a_stranger_again(flume: RawFlume, other: RawFlume, written: str) -> None:
    first, second = Member(flume, "leaver", written), Member(other, "leaver", written)
    share(first, second)
    assert flume.leave("leaver", first.member_id) == raw.NONE
    assert readable(first) == [0, 1, 2]


def test_one_group_may_give_what_another_has_taken(flume: RawFlume, written: str) -> None:
    expelled = Member(flume, "one", written, session_ms=300)
    eventually(lambda: readable(expelled) == [], "the end of its session")
    Member(flume, "another", written)
    assert readable(expelled) == [0, 1, 2]


def test_a_join_that_is_refused_makes_no_stranger_of_an_expelled_member(flume: RawFlume, written: str) -> None:
    expelled = Member(flume, "refusing", written, session_ms=300)
    eventually(lambda: readable(expelled) == [], "the end of its session")
    assert flume.join("refusing", [written, "no/topic"])[0] == raw.UNKNOWN
    assert readable(expelled) == []
    assert readable(Member(flume, "refusing", written)) == [0, 1, 2]


def test_what_was_read_while_the_session_ended_is_not_answered(tmp_path: Path) -> None:
    with Broker(flume=True, data_dir=tmp_path) as broker:
        with RawFlume(broker.flume_address) as flume:
            topic = write(flume, "slow")
        broker.flush()
        broker.restart()  # what is read now comes from the object store
        with RawFlume(broker.flume_address) as flume:
            member = Member(flume, "slow", topic, session_ms=20_000)
            hold = broker._objects.hold(Operation.READ)
            flume.socket.sendall(raw.request(raw.FETCH, 7, raw.fetch(topic, 0, 0)))
            asyncio.run_coroutine_threadsafe(hold.reached.wait(), broker._loop).result(HUNG_SECONDS)
            broker.faults.pass_time(20_000)
            broker._loop.call_soon_threadsafe(hold.release)
            assert flume.receive() == (7, b"\0\5\0\0\0\0")
            assert readable(member) == []


def test_the_session_of_a_group_with_a_config_of_its_own_is_no_longer_than_that(broker: Broker, written: str) -> None:
    """The group would expel it then, whatever the client asks for and its node has as a default."""
    listener = broker.node.doors.flume
    assert listener is not None
    assert listener._longest_session_ms("plain") == HOUR_MS
    set_session_timeout(broker, "short", 50_000)
    assert listener._longest_session_ms("short") == 50_000


def set_session_timeout(broker: Broker, group: str, timeout_ms: int) -> None:
    entry = ConfigEntry("consumer.session.timeout.ms", str(timeout_ms), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.incremental_alter_configs([resource]).values():
        done.result()
