"""How a consumer group gets on, whichever protocol its members speak: epochs, targets, and the steps towards them.

What changes members, subscriptions or topics raises the group's epoch; the next step of any member computes a target
for it, and each member is led there on its own (consumer_reconciliation)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits, TopicIdPartition
from streamhouse.core.groups.consumer_member import ConsumerMember
from streamhouse.core.groups.consumer_reconciliation import reconcile
from streamhouse.core.groups.consumer_roster import ConsumerRoster
from streamhouse.core.groups.consumer_snapshot import ConsumerState, StoredConsumerGroup, state_of
from streamhouse.core.groups.consumer_target import (
    PatternCache,
    TargetAssignment,
    Topics,
    next_target,
    preferred_assignor,
    resolve_subscriptions,
)


class Progress:
    def __init__(self, epoch: int, limits: ConsumerLimits) -> None:
        self.limits = limits
        self.group_epoch = epoch
        self.target = TargetAssignment(epoch=epoch)
        self.roster = ConsumerRoster(limits.session_timeout_ms)
        self.patterns = PatternCache()
        self.acknowledged: dict[str, frozenset[TopicIdPartition]] = {}
        self.state = ConsumerState.EMPTY
        self.state_since_ms = 0

    def load(self, stored: StoredConsumerGroup, now_ms: int) -> None:
        self.target = stored.target
        for member in stored.members:
            self.roster.put(member, now_ms)
        self.state = self._current_state()
        self.state_since_ms = stored.state_since_ms

    @property
    def ends_as_classic(self) -> bool:
        """Only members of the classic protocol are left, and the group is to go on as one of theirs."""
        members = self.roster.members.values()
        return self.limits.migration.allows_downgrade and bool(members) and all(one.is_classic for one in members)

    def advance(
        self,
        before: ConsumerMember,
        told: ConsumerMember,
        owned: frozenset[TopicIdPartition] | None,
        topics: Topics,
        now_ms: int,
    ) -> tuple[ConsumerMember, bool]:
        """A member was heard of: the member after its next step, and whether the state must be stored.

        `before` is the member as it was, `told` as it describes itself now, and `owned` what it says that it owns."""
        was_known = before.member_id in self.roster.members
        if not was_known:
            self._succeed(told)
        self.roster.put(told, now_ms)
        if not told.subscribes_like(before) or told.member_id not in self.target.partitions:
            self.group_epoch += 1
        due = self.group_epoch > self.target.epoch
        if due:
            self._retarget(topics)
        member = self._reconcile(told, owned, now_ms)
        changed = due or not was_known or member != before
        if changed:
            self.note_state(now_ms)
        return member, changed

    def _succeed(self, member: ConsumerMember) -> None:
        """A static member that comes back takes the place of its former life, with its target: nothing moves."""
        former = self.roster.static_member(member.instance_id)
        if former is None:
            return
        self.forget(former.member_id)
        partitions = dict(self.target.partitions)
        partitions[member.member_id] = partitions.pop(former.member_id, frozenset())
        self.target = replace(self.target, partitions=partitions)

    def _retarget(self, topics: Topics) -> None:
        members = self.roster.members.values()
        self.target = next_target(
            epoch=self.group_epoch,
            assignor=preferred_assignor(members),
            subscriptions=resolve_subscriptions(members, topics, self.patterns),
            previous=self.target,
        )

    def _reconcile(
        self, member: ConsumerMember, owned: frozenset[TopicIdPartition] | None, now_ms: int
    ) -> ConsumerMember:
        member_id = member.member_id
        reconciled = reconcile(
            member,
            target=self.target.of(member_id),
            target_epoch=self.target.epoch,
            owned=owned,
            held_by_another=lambda partition: self.roster.is_held_by_another(partition, member_id),
        )
        self.roster.put(reconciled, now_ms)
        if owned is not None:
            self.acknowledged[member_id] = owned
        return reconciled

    # Leaving

    def forget(self, member_id: str) -> None:
        """To be followed by `members_left`."""
        self.roster.remove(member_id)
        self.acknowledged.pop(member_id, None)

    def remove(self, member_ids: Iterable[str], now_ms: int) -> None:
        for member_id in member_ids:
            self.forget(member_id)
        self.members_left(now_ms)

    def members_left(self, now_ms: int) -> None:
        if not self.ends_as_classic:
            # As a classic group it goes on with the generation that its members know, and rebalances in its own way.
            self.group_epoch += 1
        if not self.roster.members:
            self.target = TargetAssignment(epoch=self.group_epoch)
        self.note_state(now_ms)

    # Topics and state

    def topics_changed(self, topics: Topics, now_ms: int) -> bool:
        members = self.roster.members.values()
        if not members or self.group_epoch > self.target.epoch:
            return False  # nobody minds, or a new target is due anyway
        if resolve_subscriptions(members, topics, self.patterns).partition_counts == self.target.partition_counts:
            return False
        self.group_epoch += 1
        self.note_state(now_ms)
        return True

    def note_state(self, now_ms: int) -> None:
        state = self._current_state()
        if state is not self.state:
            self.state = state
            self.state_since_ms = now_ms

    def _current_state(self) -> ConsumerState:
        return state_of(self.roster.members.values(), self.group_epoch, self.target.epoch)
