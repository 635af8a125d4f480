"""A group of the consumer protocol (KIP-848): its members only send heartbeats, and the group does the rest.

A change of members, subscriptions or topics raises the group's epoch; the next heartbeat computes a target for it, and
each member is led there on its own (consumer_reconciliation). The rules are those of Kafka's coordinator, except where
a lost reply would leave a member behind: an assignment is repeated until its member says that it owns just that.

`now_ms` never goes back, and the heartbeats of one member arrive in the order in which it sent them, the next one only
after it gave up waiting for the answer to the last: a report of owned partitions is then what the member owns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from streamhouse.core.groups.classic_messages import LeavingMember, LeftMember
from streamhouse.core.groups.consumer_heartbeat import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerLimits,
    Decision,
    HeartbeatReply,
    HeartbeatRequest,
    TopicIdPartition,
)
from streamhouse.core.groups.consumer_member import ConsumerMember
from streamhouse.core.groups.consumer_reconciliation import reconcile
from streamhouse.core.groups.consumer_roster import ConsumerRoster
from streamhouse.core.groups.consumer_snapshot import (
    ConsumerGroupDescription,
    ConsumerState,
    StoredConsumerGroup,
    describe_members,
    state_of,
)
from streamhouse.core.groups.consumer_target import (
    ASSIGNORS,
    PatternCache,
    TargetAssignment,
    Topics,
    next_target,
    preferred_assignor,
    resolve_subscriptions,
)
from streamhouse.core.groups.outcome import GroupError, Refusal
from streamhouse.model.errors import InvalidInput


class ConsumerGroup:
    def __init__(self, group_id: str, epoch: int = 0, limits: ConsumerLimits | None = None) -> None:
        """`epoch` is the last one that this group id ever had, in either protocol: epochs never go back."""
        self.group_id = group_id
        self.group_epoch = epoch
        self.state_since_ms = 0
        self._limits = limits or ConsumerLimits()
        self._roster = ConsumerRoster(self._limits.session_timeout_ms)
        self._target = TargetAssignment(epoch=epoch)
        self._patterns = PatternCache()
        self._acknowledged: dict[str, frozenset[TopicIdPartition]] = {}
        self._state = ConsumerState.EMPTY

    @classmethod
    def restore(cls, stored: StoredConsumerGroup, now_ms: int, limits: ConsumerLimits | None = None) -> ConsumerGroup:
        """Sessions start again at full length. Follow it with `topics_changed`: topics may be others by now."""
        group = cls(stored.group_id, stored.group_epoch, limits)
        group._target = stored.target
        for member in stored.members:
            group._roster.put(member, now_ms)
        group._state = group._current_state()
        group.state_since_ms = stored.state_since_ms
        return group

    @property
    def state(self) -> ConsumerState:
        return self._state

    @property
    def assignment_epoch(self) -> int:
        return self._target.epoch

    def stored(self) -> StoredConsumerGroup:
        return StoredConsumerGroup(
            group_id=self.group_id,
            group_epoch=self.group_epoch,
            target=self._target,
            state_since_ms=self.state_since_ms,
            members=tuple(self._roster.members.values()),
        )

    def describe(self) -> ConsumerGroupDescription:
        members = self._roster.members.values()
        return ConsumerGroupDescription(
            group_id=self.group_id,
            state=self._state,
            group_epoch=self.group_epoch,
            assignment_epoch=self.assignment_epoch,
            assignor=preferred_assignor(members),
            members=describe_members(members, self._target),
        )

    # Heartbeats

    def heartbeat(self, request: HeartbeatRequest, topics: Topics, now_ms: int) -> Decision:
        refusal = self._refusal(request)
        if refusal is not None:
            return Decision(refusal, False)
        if request.member_epoch < JOIN_EPOCH:
            return self._leave(request, now_ms)
        before = self._find(request)
        if isinstance(before, GroupError):
            return Decision(before, False)
        told = before.told(request)
        problem = self._pattern_problem(told)
        if problem is not None:
            return Decision(Refusal(GroupError.INVALID_REGULAR_EXPRESSION, problem), False)

        was_known = before.member_id in self._roster.members
        if not was_known:
            self._succeed(told)
        self._roster.put(told, now_ms)
        if not told.subscribes_like(before) or told.member_id not in self._target.partitions:
            self.group_epoch += 1
        due = self.group_epoch > self._target.epoch
        if due:
            self._retarget(topics)
        member = self._reconcile(told, request, now_ms)

        changed = due or not was_known or member != before
        if changed:
            self._note_state(now_ms)
        return Decision(self._reply(request, member), changed)

    def _refusal(self, request: HeartbeatRequest) -> GroupError | None:
        if self._state is ConsumerState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        if request.server_assignor and request.server_assignor not in ASSIGNORS:
            return GroupError.UNSUPPORTED_ASSIGNOR
        return request.refusal()

    def _pattern_problem(self, member: ConsumerMember) -> str | None:
        if member.subscribed_topic_regex is None:
            return None
        try:
            self._patterns.compiled(member.subscribed_topic_regex)
        except InvalidInput as problem:
            return problem.message
        return None

    def _find(self, request: HeartbeatRequest) -> ConsumerMember | GroupError:
        """The member that a heartbeat is of: one that is here, one that comes back, or one that joins."""
        joins = request.member_epoch == JOIN_EPOCH
        member = self._roster.members.get(request.member_id)
        holder = self._roster.static_member(request.instance_id)
        if holder is not None and holder is not member:
            if not joins or member is not None:
                return GroupError.FENCED_INSTANCE_ID
            return holder.back_as(request.member_id) if holder.is_away else GroupError.UNRELEASED_INSTANCE_ID
        if member is None:
            if not joins:
                return GroupError.UNKNOWN_MEMBER_ID
            if len(self._roster.members) >= self._limits.max_size:
                return GroupError.GROUP_MAX_SIZE_REACHED
            return ConsumerMember(member_id=request.member_id)
        if joins and member.is_away:
            return member.back_as(request.member_id)
        return member.epoch_refusal(request) or member

    def _succeed(self, member: ConsumerMember) -> None:
        """A static member that comes back takes the place of its former life, with its target: nothing moves."""
        former = self._roster.static_member(member.instance_id)
        if former is None:
            return
        self._forget(former.member_id)
        partitions = dict(self._target.partitions)
        partitions[member.member_id] = partitions.pop(former.member_id, frozenset())
        self._target = replace(self._target, partitions=partitions)

    def _retarget(self, topics: Topics) -> None:
        members = self._roster.members.values()
        self._target = next_target(
            epoch=self.group_epoch,
            assignor=preferred_assignor(members),
            subscriptions=resolve_subscriptions(members, topics, self._patterns),
            previous=self._target,
        )

    def _reconcile(self, member: ConsumerMember, request: HeartbeatRequest, now_ms: int) -> ConsumerMember:
        member_id = member.member_id
        owned = frozenset[TopicIdPartition]() if request.member_epoch == JOIN_EPOCH else request.owned
        reconciled = reconcile(
            member,
            target=self._target.of(member_id),
            target_epoch=self._target.epoch,
            owned=owned,
            held_by_another=lambda partition: self._roster.is_held_by_another(partition, member_id),
        )
        self._roster.put(reconciled, now_ms)
        if owned is not None:
            self._acknowledged[member_id] = owned
        return reconciled

    def _reply(self, request: HeartbeatRequest, member: ConsumerMember) -> HeartbeatReply:
        acknowledged = self._acknowledged.get(member.member_id) == member.assigned
        repeats = request.is_full or not acknowledged
        return HeartbeatReply(
            member_id=member.member_id,
            member_epoch=member.member_epoch,
            heartbeat_interval_ms=self._limits.heartbeat_interval_ms,
            assignment=tuple(sorted(member.assigned)) if repeats else None,
        )

    # Leaving

    def _leave(self, request: HeartbeatRequest, now_ms: int) -> Decision:
        member = self._roster.members.get(request.member_id)
        if request.instance_id is not None:
            holder = self._roster.static_member(request.instance_id)
            if holder is not None and holder is not member:
                return Decision(GroupError.FENCED_INSTANCE_ID, False)
            member = holder
        if member is None:
            return Decision(GroupError.UNKNOWN_MEMBER_ID, False)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            self._roster.put(member.gone_away(), now_ms)
            self._note_state(now_ms)
        else:
            self._remove([member.member_id], now_ms)
        reply = HeartbeatReply(
            member_id=member.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=self._limits.heartbeat_interval_ms,
            assignment=None,
        )
        return Decision(reply, True)

    def leave(self, leaving: Sequence[LeavingMember], now_ms: int) -> tuple[LeftMember, ...]:
        """An administrator removes members, all in one step."""
        left = tuple(
            LeftMember(member_id=one.member_id, instance_id=one.instance_id, error=self._let_go(one)) for one in leaving
        )
        if any(one.error is None for one in left):
            self._members_left(now_ms)
        return left

    def _let_go(self, leaving: LeavingMember) -> GroupError | None:
        member = self._roster.find(leaving.member_id, leaving.instance_id)
        if isinstance(member, GroupError):
            return member
        self._forget(member.member_id)
        return None

    def delete(self) -> GroupError | None:
        if self._roster.members:
            return GroupError.NON_EMPTY_GROUP
        self._state = ConsumerState.DEAD
        return None

    # Time and topics

    def tick(self, now_ms: int) -> bool:
        """Remove the members whose time is up; whether the state must be stored."""
        overdue = self._roster.overdue(now_ms)
        if overdue:
            self._remove(overdue, now_ms)
        return bool(overdue)

    def next_deadline_ms(self) -> int | None:
        return self._roster.next_deadline_ms()

    def topics_changed(self, topics: Topics, now_ms: int) -> bool:
        """Look whether the topics that the group subscribes to are others now; whether the state must be stored."""
        members = self._roster.members.values()
        if not members or self.group_epoch > self._target.epoch:
            return False  # nobody minds, or a new target is due anyway
        if resolve_subscriptions(members, topics, self._patterns).partition_counts == self._target.partition_counts:
            return False
        self.group_epoch += 1
        self._note_state(now_ms)
        return True

    # Offsets

    def check_commit(self, member_id: str, member_epoch: int) -> GroupError | None:
        """Commits come from a member at its epoch, or from outside (epoch -1) while nobody is in the group."""
        if member_epoch < JOIN_EPOCH and not self._roster.members:
            return None
        return self._epoch_mismatch(member_id, member_epoch)

    def check_fetch(self, member_id: str | None, member_epoch: int) -> GroupError | None:
        """Whoever names no member may always look."""
        if not member_id and member_epoch < JOIN_EPOCH:
            return None
        return self._epoch_mismatch(member_id or "", member_epoch)

    def _epoch_mismatch(self, member_id: str, member_epoch: int) -> GroupError | None:
        member = self._roster.members.get(member_id)
        if member is None:
            return GroupError.UNKNOWN_MEMBER_ID
        if member.is_away or member.member_epoch != member_epoch:
            return GroupError.STALE_MEMBER_EPOCH
        return None

    # State

    def _remove(self, member_ids: Iterable[str], now_ms: int) -> None:
        for member_id in member_ids:
            self._forget(member_id)
        self._members_left(now_ms)

    def _members_left(self, now_ms: int) -> None:
        self.group_epoch += 1
        if not self._roster.members:
            self._target = TargetAssignment(epoch=self.group_epoch)
        self._note_state(now_ms)

    def _forget(self, member_id: str) -> None:
        self._roster.remove(member_id)
        self._acknowledged.pop(member_id, None)

    def _note_state(self, now_ms: int) -> None:
        state = self._current_state()
        if state is not self._state:
            self._state = state
            self.state_since_ms = now_ms

    def _current_state(self) -> ConsumerState:
        return state_of(self._roster.members.values(), self.group_epoch, self._target.epoch)
