"""A consumer group's heartbeats one by one: what is told, when, and what is refused."""

from __future__ import annotations

import msgspec
import pytest

from consumer_protocol.client import REBALANCE_TIMEOUT_MS, Client
from consumer_protocol.rules import check_one_owner, check_settled, topic
from streamhouse.core.groups.classic_messages import LeavingMember, LeftMember
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import (
    ConsumerLimits,
    HeartbeatReply,
    HeartbeatRequest,
    TopicIdPartition,
)
from streamhouse.core.groups.consumer_snapshot import ConsumerState, StoredConsumerGroup
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.outcome import GroupError, Refusal

SESSION_MS = 45_000
TOPICS: Topics = {"orders": topic(1, 4), "clicks": topic(2, 2)}


def orders(*partitions: int) -> tuple[TopicIdPartition, ...]:
    return tuple((TOPICS["orders"].topic_id, partition) for partition in partitions)


def beat(
    group: ConsumerGroup, client: Client, *, topics: Topics = TOPICS, now_ms: int = 0
) -> HeartbeatReply | GroupError | Refusal:
    """One heartbeat with its answer."""
    request = client.heartbeat()
    reply = group.heartbeat(request, topics, now_ms).reply
    client.hear(request, reply)
    return reply


def told(group: ConsumerGroup, client: Client, *, topics: Topics = TOPICS, now_ms: int = 0) -> HeartbeatReply:
    reply = beat(group, client, topics=topics, now_ms=now_ms)
    assert isinstance(reply, HeartbeatReply)
    return reply


def consumer(member_id: str, *names: str, instance_id: str | None = None, regex: str = "") -> Client:
    return Client(
        member_id=member_id, names=names or (() if regex else ("orders",)), instance_id=instance_id, regex=regex
    )


def remove(group: ConsumerGroup, member_id: str, now_ms: int = 0) -> GroupError | None:
    (left,) = group.leave([LeavingMember(member_id=member_id)], now_ms)
    return left.error


def settled_group(*clients: Client) -> ConsumerGroup:
    group = ConsumerGroup("g")
    for _ in range(4):
        for client in clients:
            beat(group, client)
            client.finish_revoking()
    check_settled(group, list(clients), TOPICS)
    return group


class TestJoining:
    def test_the_first_member_gets_everything_at_once(self) -> None:
        group = ConsumerGroup("g")
        reply = told(group, consumer("a"))
        assert reply == HeartbeatReply(
            member_id="a", member_epoch=1, heartbeat_interval_ms=5_000, assignment=orders(0, 1, 2, 3)
        )
        assert group.state is ConsumerState.STABLE

    def test_an_assignment_is_repeated_until_it_is_acknowledged_and_then_left_out(self) -> None:
        group = ConsumerGroup("g")
        told(group, consumer("a"))
        plain = HeartbeatRequest(member_id="a", member_epoch=1)
        report = HeartbeatRequest(member_id="a", member_epoch=1, owned=frozenset(orders(0, 1, 2, 3)))
        assignments = [
            group.heartbeat(request, TOPICS, 0).reply.assignment  # type: ignore[union-attr]
            for request in (plain, report, plain)
        ]
        assert assignments == [orders(0, 1, 2, 3), None, None]

    def test_a_heartbeat_that_changes_nothing_need_not_be_stored(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        assert not group.heartbeat(a.heartbeat(), TOPICS, 1_000).persist

    def test_a_second_member_waits_until_the_first_has_given_up_its_share(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a)
        assert told(group, b).assignment == ()
        assert group.state is ConsumerState.RECONCILING
        assert told(group, a).assignment == orders(0, 1)
        assert a.epoch == 1  # it may still commit what it read of the others
        assert group.check_commit("a", 1) is None
        assert told(group, b).assignment is None
        a.finish_revoking()
        assert told(group, a).member_epoch == 2
        assert group.check_commit("a", 1) is GroupError.STALE_MEMBER_EPOCH
        assert told(group, b).assignment == orders(2, 3)
        assert group.state is ConsumerState.STABLE

    def test_a_join_whose_answer_was_lost_is_answered_again(self) -> None:
        group = ConsumerGroup("g")
        a = consumer("a")
        group.heartbeat(a.heartbeat(), TOPICS, 0)
        assert told(group, a).assignment == orders(0, 1, 2, 3)
        assert (a.epoch, group.group_epoch) == (1, 1)

    def test_a_fenced_member_that_gave_up_everything_joins_again_with_its_id(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a, b)
        epoch = a.epoch
        lost = Client(member_id="a", names=("orders",))
        assert told(group, lost).assignment == tuple(sorted(a.owned))
        assert lost.epoch == epoch

    def test_a_member_that_joins_again_owns_nothing_whether_it_says_so_or_not(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a)
        told(group, b)
        assert told(group, a).assignment == orders(0, 1)
        request = HeartbeatRequest(
            member_id="a", member_epoch=0, rebalance_timeout_ms=1, subscribed_topic_names=("orders",)
        )
        assert isinstance(group.heartbeat(request, TOPICS, 0).reply, HeartbeatReply)
        assert told(group, b).assignment == orders(2, 3)

    def test_a_full_group_takes_back_static_members_and_nobody_else(self) -> None:
        group = ConsumerGroup("g", limits=ConsumerLimits(max_size=1))
        a = consumer("a", instance_id="i")
        told(group, a)
        assert beat(group, consumer("b")) is GroupError.GROUP_MAX_SIZE_REACHED
        group.heartbeat(a.farewell(), TOPICS, 0)
        assert told(group, consumer("a2", instance_id="i")).member_epoch == 1

    def test_the_first_epoch_follows_the_last_one_of_the_group_id(self) -> None:
        assert told(ConsumerGroup("g", epoch=41), consumer("a")).member_epoch == 42

    def test_a_member_may_subscribe_to_nothing_that_exists(self) -> None:
        group = ConsumerGroup("g")
        assert told(group, consumer("a", "nowhere")).assignment == ()
        assert group.state is ConsumerState.STABLE


class TestRefusals:
    @pytest.mark.parametrize(
        "request_",
        [
            HeartbeatRequest(member_id="", member_epoch=0, rebalance_timeout_ms=1, subscribed_topic_names=("t",)),
            HeartbeatRequest(member_id="a", member_epoch=-3),
            HeartbeatRequest(member_id="a", member_epoch=-2),
            HeartbeatRequest(member_id="a", member_epoch=1, instance_id=""),
            HeartbeatRequest(member_id="a", member_epoch=1, rebalance_timeout_ms=-2),
            HeartbeatRequest(member_id="a", member_epoch=0, subscribed_topic_names=("t",)),
            HeartbeatRequest(member_id="a", member_epoch=0, rebalance_timeout_ms=1),
            HeartbeatRequest(
                member_id="a",
                member_epoch=0,
                rebalance_timeout_ms=1,
                subscribed_topic_names=("t",),
                owned=frozenset(orders(0)),
            ),
        ],
    )
    def test_a_heartbeat_that_no_state_could_make_right_is_invalid(self, request_: HeartbeatRequest) -> None:
        group = ConsumerGroup("g")
        assert group.heartbeat(request_, TOPICS, 0) == (GroupError.INVALID_REQUEST, False)
        assert group.state is ConsumerState.EMPTY

    def test_an_unknown_member_is_told_so(self) -> None:
        group = settled_group(consumer("a"))
        stranger = HeartbeatRequest(member_id="x", member_epoch=1)
        goodbye = HeartbeatRequest(member_id="x", member_epoch=-1)
        assert group.heartbeat(stranger, TOPICS, 0).reply is GroupError.UNKNOWN_MEMBER_ID
        assert group.heartbeat(goodbye, TOPICS, 0).reply is GroupError.UNKNOWN_MEMBER_ID

    def test_an_assignor_that_is_not_here_is_refused(self) -> None:
        client = Client(member_id="a", names=("orders",), assignor="sticky")
        assert beat(ConsumerGroup("g"), client) is GroupError.UNSUPPORTED_ASSIGNOR

    @pytest.mark.parametrize("regex", ["(", "a**", r"(a)\1", "(?=a)", "a{2,1}", "x" * 5_000, "(a{1000}){1000}"])
    def test_a_bad_or_boundless_pattern_is_refused_and_changes_nothing(self, regex: str) -> None:
        a = consumer("a")
        group = settled_group(a)
        before = group.stored()
        a.subscribe((), regex)
        refused = beat(group, a)
        assert isinstance(refused, Refusal)
        assert refused.error is GroupError.INVALID_REGULAR_EXPRESSION
        assert "topic pattern" in refused.reason
        assert group.stored() == before

    def test_an_epoch_from_the_future_is_fenced(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        a.epoch += 1
        assert beat(group, a) is GroupError.FENCED_MEMBER_EPOCH

    def test_one_epoch_back_is_accepted_if_the_member_owns_no_more_than_its_assignment(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a, b)
        remove(group, "b")
        known_epoch, known = a.epoch, a.owned
        group.heartbeat(a.heartbeat(), TOPICS, 0)  # the answer, with everything and a new epoch, is lost
        stranger = frozenset({(TOPICS["clicks"].topic_id, 0)})
        for owned, refusal in ((None, True), (known | stranger, True), (known, False)):
            request = HeartbeatRequest(member_id="a", member_epoch=known_epoch, owned=owned)
            reply = group.heartbeat(request, TOPICS, 0).reply
            assert (reply is GroupError.FENCED_MEMBER_EPOCH) == refusal
        assert isinstance(reply, HeartbeatReply)
        assert reply.assignment == orders(0, 1, 2, 3)

    def test_two_epochs_back_is_fenced(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a, b)
        request = HeartbeatRequest(member_id="a", member_epoch=a.epoch, owned=a.owned)
        for _ in range(2):
            told(group, a)
            a.subscribe((*a.names, f"more{a.epoch}"), "")
            told(group, a)
        assert a.epoch == request.member_epoch + 2
        assert group.heartbeat(request, TOPICS, 0).reply is GroupError.FENCED_MEMBER_EPOCH

    def test_a_dead_group_takes_nobody(self) -> None:
        group = ConsumerGroup("g")
        assert group.delete() is None
        assert beat(group, consumer("a")) is GroupError.COORDINATOR_NOT_AVAILABLE
        assert group.state is ConsumerState.DEAD

    def test_a_group_with_members_is_not_deleted(self) -> None:
        group = settled_group(consumer("a"))
        assert group.delete() is GroupError.NON_EMPTY_GROUP


class TestLeavingAndTimeOuts:
    def test_what_a_member_leaves_goes_to_the_others_at_their_next_heartbeat(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a, b)
        decision = group.heartbeat(b.farewell(), TOPICS, 0)
        assert decision.persist
        assert isinstance(decision.reply, HeartbeatReply)
        assert decision.reply.member_epoch == -1
        assert group.state is ConsumerState.ASSIGNING
        assert told(group, a).assignment == orders(0, 1, 2, 3)

    def test_a_silent_member_is_out_after_its_session_and_not_before(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a, b)
        told(group, a, now_ms=30_000)
        assert group.next_deadline_ms() == SESSION_MS
        assert not group.tick(SESSION_MS - 1)
        assert group.tick(SESSION_MS)
        assert [member.member_id for member in group.describe().members] == ["a"]
        assert beat(group, b, now_ms=SESSION_MS) is GroupError.UNKNOWN_MEMBER_ID

    def test_other_limits_hold_from_the_next_heartbeat_on(self) -> None:
        alice = consumer("alice", "orders")
        group = settled_group(alice)
        group.configure(ConsumerLimits(session_timeout_ms=7_000, heartbeat_interval_ms=1_234))
        assert told(group, alice, now_ms=1_000).heartbeat_interval_ms == 1_234

        assert group.next_deadline_ms() == 8_000
        assert group.tick(8_000)
        assert beat(group, alice, now_ms=8_000) is GroupError.UNKNOWN_MEMBER_ID

    def test_refused_heartbeats_do_not_keep_a_session_alive(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        wrong = HeartbeatRequest(member_id="a", member_epoch=a.epoch + 7)
        assert group.heartbeat(wrong, TOPICS, 40_000).reply is GroupError.FENCED_MEMBER_EPOCH
        assert group.tick(SESSION_MS)

    def test_a_member_that_never_gives_up_its_partitions_is_out_after_its_rebalance_time_out(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a)
        told(group, b, now_ms=1_000)
        told(group, a, now_ms=2_000)
        for now_ms in range(5_000, 32_000, 3_000):
            told(group, a, now_ms=now_ms)
            told(group, b, now_ms=now_ms)
        assert not group.tick(2_000 + REBALANCE_TIMEOUT_MS - 1)
        assert group.tick(2_000 + REBALANCE_TIMEOUT_MS)
        assert told(group, b, now_ms=32_000).assignment == orders(0, 1, 2, 3)

    def test_a_member_that_gave_up_its_partitions_in_time_is_not_timed_out_later(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a)
        told(group, b, now_ms=1_000)
        told(group, a, now_ms=2_000)
        a.finish_revoking()
        told(group, a, now_ms=3_000)
        told(group, a, now_ms=30_000)
        told(group, b, now_ms=30_000)
        assert not group.tick(2_000 + REBALANCE_TIMEOUT_MS)

    def test_when_the_last_member_leaves_the_group_is_empty_and_its_epochs_agree(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        assert remove(group, "a", now_ms=7_000) is None
        assert (group.state, group.state_since_ms) == (ConsumerState.EMPTY, 7_000)
        assert group.assignment_epoch == group.group_epoch == 2
        assert group.next_deadline_ms() is None
        assert remove(group, "a", now_ms=7_000) is GroupError.UNKNOWN_MEMBER_ID

    def test_several_are_removed_in_one_step_and_each_is_answered(self) -> None:
        a, b, c, d = consumer("a"), consumer("b", instance_id="i"), consumer("c", instance_id="j"), consumer("d")
        group = settled_group(a, b, c, d)
        epoch = group.group_epoch
        leaving = [
            LeavingMember(member_id="a"),
            LeavingMember(member_id="", instance_id="i"),
            LeavingMember(member_id="c", instance_id="j"),
            LeavingMember(member_id="a"),
            LeavingMember(member_id=""),
            LeavingMember(member_id="d", instance_id="k"),
        ]
        errors = [None, None, None, *[GroupError.UNKNOWN_MEMBER_ID] * 3]
        assert group.leave(leaving, 0) == tuple(
            LeftMember(member_id=one.member_id, instance_id=one.instance_id, error=error)
            for one, error in zip(leaving, errors, strict=True)
        )
        assert [member.member_id for member in group.stored().members] == ["d"]
        assert group.group_epoch == epoch + 1
        assert set(told(group, d).assignment or ()) == set(orders(0, 1, 2, 3))
        assert beat(group, a) is GroupError.UNKNOWN_MEMBER_ID

    def test_a_former_life_of_a_static_member_cannot_be_removed_under_its_name(self) -> None:
        group = settled_group(consumer("b", instance_id="i"))
        (left,) = group.leave([LeavingMember(member_id="a", instance_id="i")], 0)
        assert left.error is GroupError.FENCED_INSTANCE_ID
        assert group.group_epoch == 1


class TestStaticMembers:
    def test_a_static_member_that_comes_back_finds_its_partitions_and_disturbs_nobody(self) -> None:
        a, b = consumer("a", instance_id="i"), consumer("b")
        group = settled_group(a, b)
        group.heartbeat(a.farewell(), TOPICS, 0)
        assert group.state is ConsumerState.RECONCILING
        again = consumer("a2", instance_id="i")
        assert told(group, again).assignment == tuple(sorted(a.owned))
        assert told(group, b).assignment is None
        check_settled(group, [again, b], TOPICS)

    def test_nobody_gets_a_static_members_partitions_while_it_is_away(self) -> None:
        a, b = consumer("a", instance_id="i"), consumer("b")
        group = settled_group(a, b)
        group.heartbeat(a.farewell(), TOPICS, 0)
        c = consumer("c")
        for _ in range(4):
            for client in (b, c):
                told(group, client)
                client.finish_revoking()
        assert not (b.owned | c.owned) & a.owned
        check_one_owner(group, [b, c])

    def test_a_static_member_that_stays_away_is_out_after_a_session(self) -> None:
        a, b = consumer("a", instance_id="i"), consumer("b")
        group = settled_group(a, b)
        group.heartbeat(a.farewell(), TOPICS, 10_000)
        told(group, b, now_ms=50_000)
        assert group.tick(10_000 + SESSION_MS)
        assert told(group, b, now_ms=60_000).assignment == orders(0, 1, 2, 3)

    def test_a_static_member_that_goes_away_has_given_up_what_it_was_asked_to(self) -> None:
        a, b = consumer("a", instance_id="i"), consumer("b")
        group = settled_group(a)
        told(group, b)
        assert told(group, a).assignment == orders(0, 1)
        group.heartbeat(a.farewell(), TOPICS, 0)
        assert told(group, b).assignment == orders(2, 3)

    def test_an_instance_id_in_use_is_not_given_away(self) -> None:
        a = consumer("a", instance_id="i")
        group = settled_group(a)
        assert beat(group, consumer("thief", instance_id="i")) is GroupError.UNRELEASED_INSTANCE_ID
        assert group.state is ConsumerState.STABLE

    def test_a_static_member_whose_join_was_not_answered_joins_again(self) -> None:
        a = consumer("a", instance_id="i")
        group = ConsumerGroup("g")
        group.heartbeat(a.heartbeat(), TOPICS, 0)
        assert told(group, a).assignment == orders(0, 1, 2, 3)

    def test_the_former_life_of_a_static_member_is_fenced(self) -> None:
        a = consumer("a", instance_id="i")
        group = settled_group(a)
        group.heartbeat(a.farewell(), TOPICS, 0)
        told(group, consumer("a2", instance_id="i"))
        former = HeartbeatRequest(member_id="a", member_epoch=a.epoch, instance_id="i")
        goodbye = HeartbeatRequest(member_id="a", member_epoch=-2, instance_id="i")
        assert group.heartbeat(former, TOPICS, 0).reply is GroupError.FENCED_INSTANCE_ID
        assert group.heartbeat(goodbye, TOPICS, 0).reply is GroupError.FENCED_INSTANCE_ID
        assert group.check_commit("a", a.epoch) is GroupError.UNKNOWN_MEMBER_ID

    def test_a_member_of_the_group_cannot_take_the_place_of_one_that_is_away(self) -> None:
        a, b = consumer("a", instance_id="i"), consumer("b")
        group = settled_group(a, b)
        group.heartbeat(a.farewell(), TOPICS, 0)
        usurper = Client(member_id="b", names=("orders",), instance_id="i")
        assert beat(group, usurper) is GroupError.FENCED_INSTANCE_ID

    def test_a_static_member_may_leave_for_good(self) -> None:
        a = consumer("a", instance_id="i")
        group = settled_group(a)
        group.heartbeat(HeartbeatRequest(member_id="a", member_epoch=-1, instance_id="i"), TOPICS, 0)
        assert group.state is ConsumerState.EMPTY


class TestSubscriptionsAndTopics:
    def test_a_pattern_takes_the_topics_that_match_it_whole_and_those_made_later(self) -> None:
        a = consumer("a", regex="ord.*")
        group = ConsumerGroup("g")
        assert told(group, a).assignment == orders(0, 1, 2, 3)
        topics = {**TOPICS, "ordinary": topic(3, 1), "disorder": topic(4, 1)}
        assert group.topics_changed(topics, 0)
        assert group.state is ConsumerState.ASSIGNING
        told(group, a, topics=topics)
        check_settled(group, [a], topics)

    def test_topics_that_nobody_subscribes_to_do_not_matter(self) -> None:
        group = settled_group(consumer("a"))
        assert not group.topics_changed({**TOPICS, "other": topic(3, 9)}, 0)

    def test_new_partitions_and_topics_made_again_are_noticed_once(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        for shape in (topic(1, 5), topic(7, 5)):
            topics = {"orders": shape}
            assert group.topics_changed(topics, 0)
            assert not group.topics_changed(topics, 0)
            for _ in range(2):
                told(group, a, topics=topics)
                a.finish_revoking()
            check_settled(group, [a], topics)

    def test_an_empty_pattern_takes_the_earlier_one_back(self) -> None:
        a = consumer("a", regex="ord.*")
        group = ConsumerGroup("g")
        told(group, a)
        a.subscribe(("clicks",), "")
        for _ in range(2):
            told(group, a)
            a.finish_revoking()
        check_settled(group, [a], TOPICS)
        assert group.describe().members[0].subscribed_topic_regex is None

    def test_the_same_subscription_said_again_in_another_order_changes_nothing(self) -> None:
        a = consumer("a", "orders", "clicks")
        group = settled_group(a)
        a.subscribe(("clicks", "orders", "clicks"), "")
        assert not group.heartbeat(a.heartbeat(), TOPICS, 0).persist

    def test_the_assignor_that_most_members_ask_for_is_used(self) -> None:
        clients = [
            Client(member_id=member_id, names=("orders", "clicks"), assignor=assignor)
            for member_id, assignor in (("a", "range"), ("b", "range"), ("c", "uniform"))
        ]
        group = settled_group(*clients)
        assert group.describe().assignor == "range"
        owned = [[sum(topic_id.int == number for topic_id, _ in one.owned) for number in (1, 2)] for one in clients]
        assert owned == [[2, 1], [1, 1], [1, 0]]


class TestOffsetChecks:
    def test_a_commit_needs_the_members_epoch(self) -> None:
        a, b = consumer("a"), consumer("b")
        group = settled_group(a, b)
        assert group.check_commit("a", a.epoch) is None
        assert group.check_commit("a", a.epoch - 1) is GroupError.STALE_MEMBER_EPOCH
        assert group.check_commit("a", a.epoch + 1) is GroupError.STALE_MEMBER_EPOCH
        assert group.check_commit("x", a.epoch) is GroupError.UNKNOWN_MEMBER_ID

    def test_commits_from_outside_need_an_empty_group(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        assert group.check_commit("", -1) is GroupError.UNKNOWN_MEMBER_ID
        remove(group, "a")
        assert group.check_commit("", -1) is None

    def test_a_static_member_that_is_away_cannot_commit(self) -> None:
        a = consumer("a", instance_id="i")
        group = settled_group(a)
        group.heartbeat(a.farewell(), TOPICS, 0)
        for epoch in (-2, a.epoch):
            assert group.check_commit("a", epoch) is GroupError.STALE_MEMBER_EPOCH

    def test_whoever_names_no_member_may_read_offsets(self) -> None:
        a = consumer("a")
        group = settled_group(a)
        assert group.check_fetch(None, -1) is None
        assert group.check_fetch("", -1) is None
        assert group.check_fetch("a", a.epoch) is None
        assert group.check_fetch("a", a.epoch + 1) is GroupError.STALE_MEMBER_EPOCH
        assert group.check_fetch("x", 0) is GroupError.UNKNOWN_MEMBER_ID


class TestRestart:
    def test_a_group_comes_back_as_it_was_stored_with_full_sessions(self) -> None:
        a, b = consumer("a", instance_id="i"), consumer("b")
        group = settled_group(a, b)
        told(group, consumer("c"))
        told(group, a)
        stored = msgspec.json.decode(msgspec.json.encode(group.stored()), type=StoredConsumerGroup)
        again = ConsumerGroup.restore(stored, 1_000_000)
        assert again.stored() == group.stored()
        assert again.describe() == group.describe()
        assert again.next_deadline_ms() == 1_000_000 + min(SESSION_MS, REBALANCE_TIMEOUT_MS)

    def test_a_topic_that_grew_during_the_restart_is_noticed(self) -> None:
        a = consumer("a")
        group = ConsumerGroup.restore(settled_group(a).stored(), 0)
        topics = {"orders": topic(1, 6)}
        assert group.topics_changed(topics, 0)
        told(group, a, topics=topics)
        check_settled(group, [a], topics)
