"""A group of the consumer protocol (KIP-848): its members only send heartbeats, and the group does the rest.

It may have members of the classic protocol as well, which speak through `classic`. The rules are those of Kafka's
coordinator, except where a lost reply would leave a member behind: an assignment is repeated until its member says that
it owns just that.

`now_ms` never goes back, and the heartbeats of one member arrive in the order in which it sent them, the next one only
after it gave up waiting for the answer to the last: a report of owned partitions is then what the member owns."""

from __future__ import annotations

from collections.abc import Sequence

from streamhouse.core.groups.classic_messages import LeavingMember, LeftMember
from streamhouse.core.groups.consumer_classic import ClassicSide
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
from streamhouse.core.groups.consumer_progress import Progress
from streamhouse.core.groups.consumer_snapshot import (
    ConsumerGroupDescription,
    ConsumerState,
    StoredConsumerGroup,
    describe_members,
)
from streamhouse.core.groups.consumer_target import ASSIGNORS, Topics, preferred_assignor
from streamhouse.core.groups.outcome import GroupError, Refusal
from streamhouse.model.errors import InvalidInput


class ConsumerGroup:
    def __init__(self, group_id: str, epoch: int = 0, limits: ConsumerLimits | None = None) -> None:
        """`epoch` is the last one that this group id ever had, in either protocol: epochs never go back."""
        self.group_id = group_id
        self._limits = limits or ConsumerLimits()
        self._progress = Progress(epoch, self._limits)
        self._roster = self._progress.roster
        self.classic = ClassicSide(self._progress)

    @classmethod
    def restore(cls, stored: StoredConsumerGroup, now_ms: int, limits: ConsumerLimits | None = None) -> ConsumerGroup:
        """Sessions start again at full length. Follow it with `topics_changed`: topics may be others by now."""
        group = cls(stored.group_id, stored.group_epoch, limits)
        group._progress.load(stored, now_ms)
        return group

    def configure(self, limits: ConsumerLimits) -> None:
        """What holds from each member's next heartbeat on."""
        self._limits = limits
        self._roster.session_timeout_ms = limits.session_timeout_ms

    @property
    def state(self) -> ConsumerState:
        return self._progress.state

    @property
    def state_since_ms(self) -> int:
        return self._progress.state_since_ms

    @property
    def group_epoch(self) -> int:
        return self._progress.group_epoch

    @property
    def assignment_epoch(self) -> int:
        return self._progress.target.epoch

    @property
    def ends_as_classic(self) -> bool:
        """Nobody of this protocol is left in it: it is to be converted, in the step that the last one left in."""
        return self._progress.ends_as_classic

    def stored(self) -> StoredConsumerGroup:
        return StoredConsumerGroup(
            group_id=self.group_id,
            group_epoch=self.group_epoch,
            target=self._progress.target,
            state_since_ms=self.state_since_ms,
            members=tuple(self._roster.members.values()),
        )

    def describe(self) -> ConsumerGroupDescription:
        members = self._roster.members.values()
        return ConsumerGroupDescription(
            group_id=self.group_id,
            state=self.state,
            group_epoch=self.group_epoch,
            assignment_epoch=self.assignment_epoch,
            assignor=preferred_assignor(members),
            members=describe_members(members, self._progress.target),
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
        owned = frozenset[TopicIdPartition]() if request.member_epoch == JOIN_EPOCH else request.owned
        member, changed = self._progress.advance(before, told, owned, topics, now_ms)
        return Decision(self._reply(request, member), changed)

    def _refusal(self, request: HeartbeatRequest) -> GroupError | None:
        if self.state is ConsumerState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        if request.server_assignor and request.server_assignor not in ASSIGNORS:
            return GroupError.UNSUPPORTED_ASSIGNOR
        return request.refusal()

    def _pattern_problem(self, member: ConsumerMember) -> str | None:
        if member.subscribed_topic_regex is None:
            return None
        try:
            self._progress.patterns.compiled(member.subscribed_topic_regex)
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
            # A static member of the classic protocol does not say that it goes: its next life takes its place.
            returns = holder.is_away or holder.is_classic
            return holder.back_as(request.member_id) if returns else GroupError.UNRELEASED_INSTANCE_ID
        if member is None:
            if not joins:
                return GroupError.UNKNOWN_MEMBER_ID
            if len(self._roster.members) >= self._limits.max_size:
                return GroupError.GROUP_MAX_SIZE_REACHED
            return ConsumerMember(member_id=request.member_id)
        if member.is_classic:
            return GroupError.UNKNOWN_MEMBER_ID
        if joins and member.is_away:
            return member.back_as(request.member_id)
        return member.epoch_refusal(request) or member

    def _reply(self, request: HeartbeatRequest, member: ConsumerMember) -> HeartbeatReply:
        acknowledged = self._progress.acknowledged.get(member.member_id) == member.assigned
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
        if member is None or member.is_classic:
            return Decision(GroupError.UNKNOWN_MEMBER_ID, False)
        if request.member_epoch == STATIC_LEAVE_EPOCH:
            self._roster.put(member.gone_away(), now_ms)
            self._progress.note_state(now_ms)
        else:
            self._progress.remove([member.member_id], now_ms)
        reply = HeartbeatReply(
            member_id=member.member_id,
            member_epoch=request.member_epoch,
            heartbeat_interval_ms=self._limits.heartbeat_interval_ms,
            assignment=None,
        )
        return Decision(reply, True)

    def leave(self, leaving: Sequence[LeavingMember], now_ms: int) -> tuple[LeftMember, ...]:
        """Classic members leave, or an administrator removes members of either protocol; all in one step."""
        left = tuple(
            LeftMember(member_id=one.member_id, instance_id=one.instance_id, error=self._let_go(one)) for one in leaving
        )
        if any(one.error is None for one in left):
            self._progress.members_left(now_ms)
        return left

    def _let_go(self, leaving: LeavingMember) -> GroupError | None:
        member = self._roster.find(leaving.member_id, leaving.instance_id)
        if isinstance(member, GroupError):
            return member
        self._progress.forget(member.member_id)
        return None

    def delete(self) -> GroupError | None:
        if self._roster.members:
            return GroupError.NON_EMPTY_GROUP
        self._progress.state = ConsumerState.DEAD
        return None

    # Time and topics

    def tick(self, now_ms: int) -> bool:
        """Remove the members whose time is up; whether the state must be stored."""
        overdue = self._roster.overdue(now_ms)
        if overdue:
            self._progress.remove(overdue, now_ms)
        return bool(overdue)

    def next_deadline_ms(self) -> int | None:
        return self._roster.next_deadline_ms()

    def topics_changed(self, topics: Topics, now_ms: int) -> bool:
        """Look whether the topics that the group subscribes to are others now; whether the state must be stored."""
        return self._progress.topics_changed(topics, now_ms)

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
        """Each in the terms of its own protocol."""
        member = self._roster.members.get(member_id)
        if member is None:
            return GroupError.UNKNOWN_MEMBER_ID
        if member.is_away or member.member_epoch != member_epoch:
            return GroupError.ILLEGAL_GENERATION if member.is_classic else GroupError.STALE_MEMBER_EPOCH
        return None
