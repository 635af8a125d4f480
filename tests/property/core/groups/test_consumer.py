"""The consumer group protocol under every order of joins, lost answers, crashes, topic changes and restarts."""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from consumer_protocol.client import Client
from consumer_protocol.rules import check_commits, check_one_owner, check_settled, topic
from streamhouse.core.groups.consumer import ConsumerGroup
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits, HeartbeatReply
from streamhouse.core.groups.consumer_snapshot import ConsumerState, StoredConsumerGroup
from streamhouse.core.groups.consumer_target import TopicShape
from streamhouse.core.groups.outcome import GroupError

_LIMITS = ConsumerLimits()
_MAX_CLIENTS = 5
_TOPIC_NAMES = ("orders", "orders-eu", "clicks")
_SUBSCRIPTIONS = st.sampled_from(
    [(("orders",), ""), (("clicks", "orders"), ""), ((), "orders.*"), (("clicks",), "orders.*"), (("nowhere",), "")]
)
_PICK = st.integers(0, _MAX_CLIENTS - 1)
_ROUNDS_TO_SETTLE = 6


class ConsumerGroupUnderFaults(RuleBasedStateMachine):
    @initialize()
    def start(self) -> None:
        self.group = ConsumerGroup("g", limits=_LIMITS)
        self.topics: dict[str, TopicShape] = {"orders": topic(1, 3), "clicks": topic(2, 2)}
        self.clients: list[Client] = []
        self.made = 0
        self.topics_made = 2
        self.now_ms = 0
        self.persisted: StoredConsumerGroup = self.group.stored()
        self.highest_epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}

    def client(self, pick: int) -> Client | None:
        return self.clients[pick % len(self.clients)] if self.clients else None

    def persist(self, needed: bool) -> None:
        if needed:
            self.persisted = self.group.stored()

    def exchange(self, client: Client, *, answered: bool) -> None:
        request = client.heartbeat()
        decision = self.group.heartbeat(request, self.topics, self.now_ms)
        self.persist(decision.persist)
        if isinstance(decision.reply, HeartbeatReply):
            assert decision.reply.member_epoch >= self.member_epochs.get(client.member_id, 0)
            self.member_epochs[client.member_id] = decision.reply.member_epoch
        if answered:
            client.hear(request, decision.reply)
            assert client.fatal in (None, GroupError.UNRELEASED_INSTANCE_ID, GroupError.FENCED_INSTANCE_ID)
            if client.fatal is not None:
                self.clients.remove(client)
        else:
            client.hear_nothing()

    def everybody_sends_a_heartbeat(self) -> None:
        for client in list(self.clients):
            self.exchange(client, answered=True)
            client.finish_revoking()

    @precondition(lambda self: len(self.clients) < _MAX_CLIENTS)
    @rule(
        subscription=_SUBSCRIPTIONS,
        instance=st.sampled_from([None, None, "one", "two"]),
        assignor=st.sampled_from([None, "uniform", "range"]),
        answered=st.booleans(),
    )
    def somebody_starts(
        self, subscription: tuple[tuple[str, ...], str], instance: str | None, assignor: str | None, answered: bool
    ) -> None:
        if instance is not None and any(client.instance_id == instance for client in self.clients):
            return
        self.made += 1
        names, regex = subscription
        client = Client(member_id=f"m{self.made}", names=names, regex=regex, instance_id=instance, assignor=assignor)
        self.clients.append(client)
        self.exchange(client, answered=answered)

    @rule(pick=_PICK, answered=st.sampled_from([True, True, True, False]))
    def somebody_sends_a_heartbeat(self, pick: int, answered: bool) -> None:
        client = self.client(pick)
        if client is not None:
            self.exchange(client, answered=answered)

    @rule(pick=_PICK)
    def somebody_finishes_revoking(self, pick: int) -> None:
        client = self.client(pick)
        if client is not None:
            client.finish_revoking()

    @rule(pick=_PICK, subscription=_SUBSCRIPTIONS)
    def somebody_subscribes_otherwise(self, pick: int, subscription: tuple[tuple[str, ...], str]) -> None:
        client = self.client(pick)
        if client is not None:
            client.subscribe(*subscription)

    @rule(pick=_PICK)
    def somebody_crashes(self, pick: int) -> None:
        client = self.client(pick)
        if client is not None:
            self.clients.remove(client)

    @rule(pick=_PICK)
    def somebody_leaves(self, pick: int) -> None:
        client = self.client(pick)
        if client is not None:
            self.clients.remove(client)
            self.persist(self.group.heartbeat(client.farewell(), self.topics, self.now_ms).persist)

    @rule(pick=_PICK, step=st.sampled_from([-2, -1, 1, 5]))
    def a_wrong_epoch_changes_nothing(self, pick: int, step: int) -> None:
        client = self.client(pick)
        if client is None or client.epoch + step <= 0:
            return
        before = self.group.stored()
        member = next((one for one in before.members if one.member_id == client.member_id), None)
        if member is not None and client.epoch + step in (member.member_epoch, member.previous_epoch):
            return
        impostor = Client(member_id=client.member_id, names=("clicks",), epoch=client.epoch + step, unsure=True)
        decision = self.group.heartbeat(impostor.heartbeat(), self.topics, self.now_ms)
        assert decision.reply in (GroupError.FENCED_MEMBER_EPOCH, GroupError.UNKNOWN_MEMBER_ID)
        assert not decision.persist
        assert self.group.stored() == before

    @rule(elapsed_ms=st.sampled_from([1, 5_000, 29_999, 30_000, 44_999, 45_000, 100_000]))
    def time_passes(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        self.persist(self.group.tick(self.now_ms))
        deadline = self.group.next_deadline_ms()
        assert deadline is None or deadline > self.now_ms

    @rule(name=st.sampled_from(_TOPIC_NAMES), change=st.sampled_from(["grow", "make", "delete"]))
    def topics_change(self, name: str, change: str) -> None:
        shape = self.topics.get(name)
        if change == "delete":
            self.topics.pop(name, None)
        elif shape is None:
            self.topics_made += 1
            self.topics[name] = topic(self.topics_made, 2)
        elif change == "grow" and shape.partition_count < 6:
            self.topics[name] = shape._replace(partition_count=shape.partition_count + 1)
        self.persist(self.group.topics_changed(self.topics, self.now_ms))

    @rule()
    def the_coordinator_restarts(self) -> None:
        self.group = ConsumerGroup.restore(self.persisted, self.now_ms, _LIMITS)
        self.persist(self.group.topics_changed(self.topics, self.now_ms))

    @invariant()
    def no_partition_is_used_twice(self) -> None:
        check_one_owner(self.group, self.clients)

    @invariant()
    def commits_need_the_current_epoch(self) -> None:
        check_commits(self.group, self.clients)

    @invariant()
    def epochs_never_go_back(self) -> None:
        epochs = (self.group.group_epoch, self.group.assignment_epoch)
        assert epochs[0] >= self.highest_epochs[0]
        assert epochs[1] >= self.highest_epochs[1]
        assert epochs[0] >= epochs[1]
        self.highest_epochs = epochs

    @invariant()
    def all_that_changed_was_to_be_stored(self) -> None:
        assert self.group.stored() == self.persisted

    @invariant()
    def the_state_is_what_the_members_say(self) -> None:
        group = self.group
        members = group.describe().members
        assert (group.state is ConsumerState.EMPTY) == (not members)
        if members:
            assert (group.state is ConsumerState.ASSIGNING) == (group.group_epoch > group.assignment_epoch)
        if group.state is ConsumerState.STABLE:
            assert all(member.assigned == member.target for member in members)

    def teardown(self) -> None:
        if not hasattr(self, "group"):
            return
        for _ in range(2):  # those who crashed are given up, while the others are heard of
            self.everybody_sends_a_heartbeat()
            self.now_ms += _LIMITS.session_timeout_ms // 2
            self.persist(self.group.tick(self.now_ms))
        for _ in range(_ROUNDS_TO_SETTLE):
            self.everybody_sends_a_heartbeat()
        check_one_owner(self.group, self.clients)
        check_settled(self.group, self.clients, self.topics)


TestConsumerGroupUnderFaults = ConsumerGroupUnderFaults.TestCase
TestConsumerGroupUnderFaults.settings = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
