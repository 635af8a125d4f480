"""A group goes from one protocol to the other: who holds what afterwards, and under which numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import msgspec
import pytest

from consumer_protocol.rules import topic
from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import ClassicLimits, JoinReply, JoinRequest, MemberClaim, SyncRequest
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.classic_snapshot import StoredGroup
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_snapshot import StoredConsumerGroup
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.embedded import EmbeddedSubscription, NamedPartition
from streamhouse.core.groups.group_kind import MigrationPolicy
from streamhouse.core.groups.migration import MAX_NAMED_TOGETHER, to_classic_group, to_consumer_group
from streamhouse.core.groups.outcome import GroupError, Ticket

TOPICS: Topics = {"orders": topic(1, 4)}


class JsonProtocol:
    """The embedded bytes as JSON: `[topics, owned]` and `owned`."""

    def read_subscription(self, metadata: bytes) -> EmbeddedSubscription | None:
        try:
            topics, owned = msgspec.json.decode(metadata, type=tuple[tuple[str, ...], tuple[NamedPartition, ...]])
        except msgspec.MsgspecError:
            return None
        return EmbeddedSubscription(topics=topics, owned=owned)

    def read_assignment(self, assignment: bytes) -> tuple[NamedPartition, ...]:
        return msgspec.json.decode(assignment, type=tuple[NamedPartition, ...]) if assignment else ()

    def write_assignment(self, partitions: Iterable[NamedPartition], metadata: bytes) -> bytes:
        return msgspec.json.encode(list(partitions))


EMBEDDED = JsonProtocol()


def orders(*partitions: int) -> frozenset[TopicIdPartition]:
    return frozenset((TOPICS["orders"].topic_id, partition) for partition in partitions)


def share(*partitions: int) -> bytes:
    return EMBEDDED.write_assignment([("orders", partition) for partition in partitions], b"")


class Classic:
    """A classic group, whose members join together and are assigned what the test says."""

    def __init__(self, protocol_type: str = "consumer") -> None:
        self.group = ClassicGroup("g", limits=ClassicLimits(initial_rebalance_delay_ms=0))
        self.answers: dict[Ticket, JoinReply] = {}
        self._protocol_type = protocol_type
        self._tickets = 0

    def join(self, member_id: str, *owned: int, metadata: bytes | None = None) -> Ticket:
        self._tickets += 1
        ticket = Ticket(self._tickets)
        said = msgspec.json.encode((["orders"], [("orders", partition) for partition in owned]))
        request = JoinRequest(
            member_id=member_id if member_id in {one.member_id for one in self.group.stored().members} else "",
            new_member_id=member_id,
            client_id="client",
            client_host="host",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000,
            protocol_type=self._protocol_type,
            protocols=(("range", said if metadata is None else metadata),),
            requires_member_id=False,
        )
        for answer in self.group.join(ticket, request, 0).answers:
            assert isinstance(answer.reply, JoinReply)
            self.answers[answer.ticket] = answer.reply
        return ticket

    def assign(self, **shares: bytes) -> None:
        leader = self.group.describe().leader or ""
        claim = MemberClaim(member_id=leader, generation=self.group.generation)
        self._tickets += 1
        self.group.sync(Ticket(self._tickets), SyncRequest(claim=claim, assignments=shares), 0)
        assert self.group.state is ClassicState.STABLE

    def converted(self) -> StoredConsumerGroup | None:
        return to_consumer_group(self.group.standing(), TOPICS, EMBEDDED)


def stable() -> Classic:
    """Two members, `a` and `b`, in generation 2."""
    classic = Classic()
    classic.join("a")
    classic.join("b")
    classic.join("a")
    classic.assign(a=share(0, 1), b=share(2, 3))
    return classic


def test_a_group_whose_members_name_too_much_together_is_not_converted() -> None:
    """It is done in one go. Four partitions are assigned."""

    def converted(topics_of_each: int) -> StoredConsumerGroup | None:
        said = msgspec.json.encode((["orders"] * topics_of_each, []))
        group = stable().group.standing()
        members = tuple(replace(member, protocols=(("range", said),)) for member in group.members)
        return to_consumer_group(replace(group, members=members), TOPICS, EMBEDDED)

    assert converted(MAX_NAMED_TOGETHER // 2 - 2) is not None
    assert converted(MAX_NAMED_TOGETHER // 2 - 1) is None


def held(stored: StoredConsumerGroup | None) -> dict[str, frozenset[TopicIdPartition]]:
    assert stored is not None
    assert {member.member_id: member.assigned for member in stored.members} == dict(stored.target.partitions)
    return {member.member_id: member.assigned for member in stored.members}


class TestUpgrade:
    def test_members_keep_their_partitions_and_the_generation_is_their_epoch(self) -> None:
        classic = stable()
        converted = classic.converted()
        assert converted is not None
        assert held(converted) == {"a": orders(0, 1), "b": orders(2, 3)}
        generation = classic.group.generation
        assert {member.member_epoch for member in converted.members} == {generation}
        assert converted.group_epoch == converted.target.epoch == generation == 2
        group = ConsumerGroup.restore(converted, 0)
        claim = MemberClaim(member_id="a", generation=generation)
        assert group.classic.heartbeat(claim, 0) is None
        assert group.check_commit("a", generation) is None
        assert group.topics_changed(TOPICS, 0), "the group has not decided yet who should have what"

    def test_what_a_member_owned_when_it_joined_is_its_own_while_there_is_no_assignment(self) -> None:
        classic = stable()
        classic.join("a", 0, 1)
        classic.join("b", 3)
        assert classic.group.state is ClassicState.COMPLETING
        assert held(classic.converted()) == {"a": orders(0, 1), "b": orders(3)}

    def test_what_was_assigned_since_counts_for_more_than_what_was_owned(self) -> None:
        classic = stable()
        classic.join("a", 0, 1)
        classic.join("b", 2, 3)
        classic.assign(a=share(0), b=share(2, 3))
        assert held(classic.converted()) == {"a": orders(0, 1), "b": orders(2, 3)}, "1 is still to be given up"
        classic.join("a", 0, 1)
        classic.join("b", 2, 3)
        classic.assign(a=share(0), b=share(1, 2, 3))
        assert held(classic.converted()) == {"a": orders(0), "b": orders(1, 2, 3)}

    def test_what_two_were_given_one_has_and_what_does_not_exist_nobody(self) -> None:
        classic = stable()
        classic.join("a")
        classic.join("b")
        classic.assign(a=share(0, 1), b=share(1, 2, 9))
        assert held(classic.converted()) == {"a": orders(0, 1), "b": orders(2)}

    def test_those_who_wait_for_their_first_generation_stay_behind_and_are_told_to_join_again(self) -> None:
        classic = stable()
        ticket = classic.join("c")
        assert held(classic.converted()).keys() == {"a", "b"}
        outcome = classic.group.retire(0)
        assert [answer.ticket for answer in outcome.answers] == [ticket]
        (answer,) = outcome.answers
        assert isinstance(answer.reply, JoinReply)
        assert (answer.reply.error, answer.reply.member_id) == (GroupError.COORDINATOR_LOAD_IN_PROGRESS, "c")

    def test_members_that_are_no_consumers_are_not_converted(self) -> None:
        connect = Classic("connect")
        connect.join("w")
        assert connect.converted() is None
        odd = Classic()
        odd.join("a", metadata=b"no JSON")
        assert odd.converted() is None


class TestDowngrade:
    def downgraded(self) -> StoredGroup:
        converted = stable().converted()
        assert converted is not None
        return to_classic_group(converted, TOPICS, EMBEDDED)

    def test_the_members_are_to_join_again_in_the_generation_that_they_know(self) -> None:
        group = ClassicGroup.restore(self.downgraded(), 0)
        assert (group.state, group.generation, group.protocol_type) == (ClassicState.PREPARING, 2, "consumer")
        claim = MemberClaim(member_id="a", generation=2)
        assert group.heartbeat(claim, 0) is GroupError.REBALANCE_IN_PROGRESS
        assert group.check_commit(claim, 0) is None
        sync = SyncRequest(claim=claim, protocol_name="range")
        (answer,) = group.sync(Ticket(1), sync, 0).answers
        assert answer.reply.error is GroupError.REBALANCE_IN_PROGRESS

    def test_those_who_do_not_come_back_in_time_are_removed(self) -> None:
        group = ClassicGroup.restore(self.downgraded(), 0)
        group.tick(20_000)
        assert (group.state, group.generation) == (ClassicState.EMPTY, 3)

    def test_it_is_the_same_after_a_restart(self) -> None:
        stored = self.downgraded()
        assert msgspec.json.decode(msgspec.json.encode(stored), type=StoredGroup) == stored
        assert ClassicGroup.restore(stored, 0).stored().rebalancing

    def test_converted_again_it_still_knows_who_holds_what(self) -> None:
        group = ClassicGroup.restore(self.downgraded(), 0)
        assert held(to_consumer_group(group.standing(), TOPICS, EMBEDDED)) == {"a": orders(0, 1), "b": orders(2, 3)}


def test_what_is_stored_of_classic_members_in_a_consumer_group_comes_back() -> None:
    converted = stable().converted()
    assert msgspec.json.decode(msgspec.json.encode(converted), type=StoredConsumerGroup) == converted


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [
        (MigrationPolicy.DISABLED, False, False),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.BIDIRECTIONAL, True, True),
    ],
)
def test_a_policy_allows_what_its_name_says(policy: MigrationPolicy, upgrade: bool, downgrade: bool) -> None:
    assert (policy.allows_upgrade, policy.allows_downgrade) == (upgrade, downgrade)
