"""Classic members in a consumer group, request by request: what they are told, when, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from consumer_protocol.client import Client
from consumer_protocol.rules import topic
from streamhouse.core.groups.classic_messages import JoinReply, JoinRequest, LeavingMember, MemberClaim, SyncRequest
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits, HeartbeatReply, TopicIdPartition
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.embedded import EmbeddedSubscription, NamedPartition
from streamhouse.core.groups.group_kind import MigrationPolicy
from streamhouse.core.groups.outcome import GroupError

TOPICS: Topics = {"orders": topic(1, 4)}
SESSION_MS = 10_000
REBALANCE_MS = 20_000


def orders(*partitions: int) -> frozenset[TopicIdPartition]:
    return frozenset((TOPICS["orders"].topic_id, partition) for partition in partitions)


def join_request(member_id: str = "", *, new_id: str = "new", instance_id: str | None = None) -> JoinRequest:
    return JoinRequest(
        member_id=member_id,
        new_member_id=new_id,
        client_id="client",
        client_host="host",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=REBALANCE_MS,
        protocol_type="consumer",
        protocols=(("range", b"r"), ("sticky", b"s")),
        instance_id=instance_id,
    )


class Mixed:
    """A group with one member of the newer protocol, `n`, which beats when it is told to."""

    def __init__(self, limits: ConsumerLimits | None = None) -> None:
        self.group = ConsumerGroup("g", limits=limits)
        self.newer = Client(member_id="n", names=("orders",))
        self.now_ms = 0
        self.beat()

    def beat(self) -> None:
        """Until nothing is new to it."""
        for _ in range(3):
            request = self.newer.heartbeat()
            reply = self.group.heartbeat(request, TOPICS, self.now_ms).reply
            assert isinstance(reply, HeartbeatReply)
            self.newer.hear(request, reply)
            self.newer.finish_revoking()

    def join(
        self,
        member_id: str = "",
        *owned: int,
        request: JoinRequest | None = None,
        subscribes: tuple[str, ...] = ("orders",),
    ) -> JoinReply:
        named: tuple[NamedPartition, ...] = tuple(("orders", partition) for partition in owned)
        reply, _ = self.group.classic.join(
            request or join_request(member_id),
            EmbeddedSubscription(topics=subscribes, owned=named),
            TOPICS,
            self.now_ms,
        )
        return reply

    def sync(self, joined: JoinReply) -> frozenset[TopicIdPartition] | GroupError:
        member = self.group.classic.sync(SyncRequest(claim=claim_of(joined), protocol_name="range"), self.now_ms)
        return member if isinstance(member, GroupError) else member.assigned

    def heartbeat(self, joined: JoinReply) -> GroupError | None:
        return self.group.classic.heartbeat(claim_of(joined), self.now_ms)

    def settled(self, member_id: str = "c") -> JoinReply:
        """A classic member that has what it should have, and has been told."""
        self.join(member_id)
        self.beat()
        joined = self.join(member_id)
        assert self.sync(joined) == orders(2, 3)
        assert self.heartbeat(joined) is None
        return joined


def claim_of(joined: JoinReply) -> MemberClaim:
    return MemberClaim(member_id=joined.member_id, generation=joined.generation)


class TestJoining:
    def test_a_member_without_an_id_is_told_one_first_and_nothing_is_remembered_of_it(self) -> None:
        mixed = Mixed()
        before = mixed.group.stored()
        asked = mixed.join(request=join_request(new_id="c-1"))
        assert (asked.error, asked.member_id) == (GroupError.MEMBER_ID_REQUIRED, "c-1")
        assert mixed.group.stored() == before
        assert mixed.join("c-1").error is None

    def test_an_old_client_is_let_in_at_once(self) -> None:
        joined = Mixed().join(request=replace(join_request(new_id="c-1"), requires_member_id=False))
        assert (joined.error, joined.member_id) == (None, "c-1")

    def test_it_is_a_follower_at_its_own_epoch_of_the_protocol_that_it_likes_best(self) -> None:
        joined = Mixed().join("c")
        assert joined == JoinReply(member_id="c", generation=2, protocol_type="consumer", protocol_name="range")

    def test_it_gets_what_nobody_holds_and_the_rest_when_that_is_given_up(self) -> None:
        mixed = Mixed()
        joined = mixed.join("c")
        assert mixed.sync(joined) == frozenset()
        assert mixed.heartbeat(joined) is None, "what it is to have is still held"
        mixed.beat()
        assert mixed.heartbeat(joined) is GroupError.REBALANCE_IN_PROGRESS
        assert mixed.sync(mixed.join("c")) == orders(2, 3)

    def test_an_eager_member_gives_way_in_one_round(self) -> None:
        mixed = Mixed()
        mixed.settled()
        other = mixed.join("d")
        mixed.beat()
        joined = mixed.join("c")
        assert joined.generation == other.generation == 3
        held = mixed.sync(joined)
        assert isinstance(held, frozenset)
        assert len(held) == 1
        assert mixed.sync(mixed.join("d")) == orders(0, 1, 2, 3) - mixed.newer.owned - held

    def test_a_cooperative_member_keeps_its_epoch_until_it_has_given_up_what_it_must(self) -> None:
        mixed = Mixed()
        first = mixed.settled()
        mixed.join("d")
        mixed.beat()
        joined = mixed.join("c", 2, 3)
        assert joined.generation == first.generation, "with which it commits what it gives up"
        kept = mixed.sync(joined)
        assert isinstance(kept, frozenset)
        assert len(kept) == 1
        assert mixed.heartbeat(joined) is GroupError.REBALANCE_IN_PROGRESS
        again = mixed.join("c", *(partition for _, partition in kept))
        assert again.generation == 3
        assert mixed.sync(again) == kept

    def test_what_it_subscribes_to_later_counts(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        assert mixed.join("c", subscribes=()).generation == joined.generation + 1
        mixed.beat()
        assert mixed.newer.owned == orders(0, 1, 2, 3)

    @pytest.mark.parametrize(
        "request_",
        [
            replace(join_request("d"), protocol_type="connect"),
            replace(join_request("d"), protocols=()),
            replace(join_request("d"), protocols=(("roundrobin", b"x"),)),
        ],
    )
    def test_what_the_other_classic_members_do_not_speak_is_refused(self, request_: JoinRequest) -> None:
        mixed = Mixed()
        mixed.settled()
        assert mixed.join(request=request_).error is GroupError.INCONSISTENT_GROUP_PROTOCOL

    def test_what_is_no_subscription_is_refused(self) -> None:
        reply, persist = Mixed().group.classic.join(join_request("c"), None, TOPICS, 0)
        assert (reply.error, persist) == (GroupError.INCONSISTENT_GROUP_PROTOCOL, False)

    def test_a_full_group_takes_nobody_else(self) -> None:
        mixed = Mixed(ConsumerLimits(max_size=2))
        mixed.settled()
        assert mixed.join("d").error is GroupError.GROUP_MAX_SIZE_REACHED
        assert mixed.join("c").error is None

    def test_the_id_of_a_member_of_the_newer_protocol_is_not_its_own(self) -> None:
        assert Mixed().join("n").error is GroupError.UNKNOWN_MEMBER_ID

    def test_a_member_that_was_removed_and_does_not_know_it_gives_up_what_it_owns_first(self) -> None:
        mixed = Mixed()
        mixed.settled()
        mixed.group.leave([LeavingMember(member_id="c")], 0)
        mixed.beat()
        assert mixed.join("c", 2, 3).error is GroupError.UNKNOWN_MEMBER_ID
        assert mixed.join("c").error is None


class TestStaticMembers:
    def test_the_next_life_takes_the_place_of_the_former_and_nobody_else_notices(self) -> None:
        mixed = Mixed()
        mixed.join(request=join_request(new_id="c-1", instance_id="i"))
        mixed.beat()
        former = mixed.join(request=join_request("c-1", instance_id="i"))
        epoch = mixed.group.group_epoch
        again = mixed.join(request=join_request(new_id="c-2", instance_id="i"))
        assert (again.member_id, again.generation) == ("c-2", former.generation)
        assert mixed.sync(again) == orders(2, 3)
        assert mixed.group.group_epoch == epoch
        claim = MemberClaim(member_id="c-1", generation=former.generation, instance_id="i")
        assert mixed.group.classic.heartbeat(claim, 0) is GroupError.FENCED_INSTANCE_ID
        assert mixed.join(request=join_request("c-1", instance_id="i")).error is GroupError.FENCED_INSTANCE_ID

    def test_an_instance_that_is_not_here_is_unknown_under_any_id(self) -> None:
        mixed = Mixed()
        assert mixed.join(request=join_request("c-1", instance_id="i")).error is GroupError.UNKNOWN_MEMBER_ID
        claim = MemberClaim(member_id="c-1", generation=1, instance_id="i")
        assert mixed.group.classic.heartbeat(claim, 0) is GroupError.UNKNOWN_MEMBER_ID

    def test_it_comes_back_in_the_newer_protocol_without_having_said_that_it_goes(self) -> None:
        mixed = Mixed()
        mixed.join(request=join_request(new_id="c-1", instance_id="i"))
        mixed.beat()
        mixed.join(request=join_request("c-1", instance_id="i"))
        newer = Client(member_id="m", names=("orders",), instance_id="i")
        reply = mixed.group.heartbeat(newer.heartbeat(), TOPICS, 0).reply
        assert isinstance(reply, HeartbeatReply)
        assert set(reply.assignment or ()) == orders(2, 3)

    def test_a_member_of_the_newer_protocol_comes_back_in_the_classic_one(self) -> None:
        mixed = Mixed()
        static = Client(member_id="m", names=("orders",), instance_id="i")
        request = static.heartbeat()
        static.hear(request, mixed.group.heartbeat(request, TOPICS, 0).reply)
        mixed.beat()
        mixed.group.heartbeat(static.heartbeat(), TOPICS, 0)
        joined = mixed.join(request=join_request(new_id="c-1", instance_id="i"))
        assert joined.member_id == "c-1"
        assert mixed.sync(joined) == orders(2, 3)


class TestBeingTold:
    def test_a_change_makes_it_join_again_whatever_it_asks(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        mixed.join("d")
        assert mixed.heartbeat(joined) is GroupError.REBALANCE_IN_PROGRESS
        assert mixed.sync(joined) is GroupError.REBALANCE_IN_PROGRESS

    def test_another_generation_or_protocol_is_refused(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        wrong = replace(joined, generation=joined.generation - 1)
        assert mixed.heartbeat(wrong) is mixed.sync(wrong) is GroupError.ILLEGAL_GENERATION
        claim = claim_of(joined)
        for request in (
            SyncRequest(claim=claim, protocol_type="connect"),
            SyncRequest(claim=claim, protocol_name="sticky"),
        ):
            assert mixed.group.classic.sync(request, 0) is GroupError.INCONSISTENT_GROUP_PROTOCOL

    def test_each_protocol_is_unknown_to_the_other(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        newer = MemberClaim(member_id="n", generation=mixed.newer.epoch)
        assert mixed.group.classic.heartbeat(newer, 0) is GroupError.UNKNOWN_MEMBER_ID
        imposter = Client(member_id="c", names=("orders",), epoch=joined.generation)
        for request in (imposter.heartbeat(), imposter.farewell(), replace(imposter.heartbeat(), member_epoch=-1)):
            assert mixed.group.heartbeat(request, TOPICS, 0).reply is GroupError.UNKNOWN_MEMBER_ID

    def test_commits_are_taken_with_its_generation_also_while_the_group_goes_on(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        mixed.join("d")
        assert mixed.group.check_commit("c", joined.generation) is None
        assert mixed.group.check_commit("c", joined.generation - 1) is GroupError.ILLEGAL_GENERATION
        assert mixed.group.check_commit("n", mixed.newer.epoch - 1) is GroupError.STALE_MEMBER_EPOCH


class TestTime:
    def test_silence_for_its_own_session_removes_it(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        mixed.now_ms = SESSION_MS - 1
        assert mixed.heartbeat(joined) is None
        assert not mixed.group.tick(2 * SESSION_MS - 2)
        assert mixed.group.tick(2 * SESSION_MS - 1)
        assert [member.member_id for member in mixed.group.stored().members] == ["n"]

    def test_one_that_does_not_sync_is_removed_after_its_rebalance_time_however_lively_it_is(self) -> None:
        mixed = Mixed()
        joined = mixed.join("c")
        for mixed.now_ms in range(1_000, REBALANCE_MS, 5_000):
            mixed.heartbeat(joined)
        assert not mixed.group.tick(REBALANCE_MS - 1)
        assert mixed.group.tick(REBALANCE_MS)

    def test_one_that_is_told_to_join_again_has_its_rebalance_time_from_the_first_time(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        mixed.join("d")
        mixed.sync(mixed.join("d"))
        for mixed.now_ms in range(1_000, REBALANCE_MS + 1_000, 5_000):
            mixed.beat()
            assert mixed.heartbeat(joined) is GroupError.REBALANCE_IN_PROGRESS
        mixed.now_ms = REBALANCE_MS
        mixed.heartbeat(joined)
        assert "c" in {member.member_id for member in mixed.group.stored().members}
        assert mixed.group.tick(REBALANCE_MS + 1_000)
        assert "c" not in {member.member_id for member in mixed.group.stored().members}


class TestTheEnd:
    def test_when_only_classic_members_are_left_the_group_keeps_its_epoch_and_is_to_be_theirs(self) -> None:
        mixed = Mixed()
        joined = mixed.settled()
        assert not mixed.group.ends_as_classic
        mixed.group.heartbeat(mixed.newer.farewell(), TOPICS, 0)
        assert mixed.group.ends_as_classic
        assert mixed.group.group_epoch == joined.generation

    @pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.UPGRADE])
    def test_it_goes_on_as_it_is_where_it_may_not_be_converted(self, policy: MigrationPolicy) -> None:
        mixed = Mixed(ConsumerLimits(migration=policy))
        joined = mixed.settled()
        mixed.group.heartbeat(mixed.newer.farewell(), TOPICS, 0)
        assert not mixed.group.ends_as_classic
        assert mixed.heartbeat(joined) is GroupError.REBALANCE_IN_PROGRESS
        assert mixed.sync(mixed.join("c")) == orders(0, 1, 2, 3)

    def test_an_empty_group_is_nobodys(self) -> None:
        mixed = Mixed()
        mixed.group.heartbeat(mixed.newer.farewell(), TOPICS, 0)
        assert not mixed.group.ends_as_classic
