"""A consumer group of the classic protocol: what each request of its members, and time, does to it.

The rules are those of Kafka's coordinator. Three things are stricter here: a request that a newer one of the same
member supersedes is answered (REBALANCE_IN_PROGRESS) instead of forgotten; so is a sync whose member leaves; and a
generation is stored before its members hear of it. `now_ms` never goes back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamhouse.core.groups.classic_door import Door
from streamhouse.core.groups.classic_messages import (
    ClassicLimits,
    ClassicReply,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    LeftMember,
    MemberClaim,
    SyncReply,
    SyncRequest,
)
from streamhouse.core.groups.classic_rebalance import ClassicState, Rebalance
from streamhouse.core.groups.classic_snapshot import GroupDescription, StoredGroup, describe, load, store
from streamhouse.core.groups.embedded import CONSUMER_PROTOCOL_TYPE
from streamhouse.core.groups.outcome import GroupError, Outcome, Ticket

_KAFKA_DEFAULTS = ClassicLimits()


class ClassicGroup:
    def __init__(self, group_id: str, generation: int = 0, limits: ClassicLimits = _KAFKA_DEFAULTS) -> None:
        self.group_id = group_id
        self._rebalance = Rebalance(limits, generation)
        self._door = Door(limits, self._rebalance)
        self._roster = self._rebalance.roster

    @classmethod
    def restore(cls, stored: StoredGroup, now_ms: int, limits: ClassicLimits = _KAFKA_DEFAULTS) -> ClassicGroup:
        group = cls(stored.group_id, stored.generation, limits)
        load(stored, group._rebalance, now_ms)
        return group

    @property
    def state(self) -> ClassicState:
        return self._rebalance.state

    @property
    def state_since_ms(self) -> int:
        return self._rebalance.state_since_ms

    @property
    def generation(self) -> int:
        return self._rebalance.generation

    @property
    def protocol_type(self) -> str | None:
        """None if the group never had a member: its offsets are those of consumers that assign by themselves."""
        return self._roster.protocol_type

    def stored(self) -> StoredGroup:
        return store(self.group_id, self._rebalance)

    def describe(self) -> GroupDescription:
        return describe(self.group_id, self._rebalance)

    def join(self, ticket: Ticket, request: JoinRequest, now_ms: int) -> Outcome[ClassicReply]:
        return self._door.join(ticket, request, now_ms)

    # Sync

    def sync(self, ticket: Ticket, request: SyncRequest, now_ms: int) -> Outcome[ClassicReply]:
        refusal = self._sync_refusal(request)
        if refusal is not None:
            self._rebalance.answer(ticket, SyncReply(error=refusal))
            return self._rebalance.outcome()
        member = self._roster.members[request.claim.member_id]
        member.seen(now_ms)
        self._rebalance.synced(member)
        if self.state is ClassicState.STABLE:
            self._rebalance.answer(ticket, self._rebalance.synced_reply(member))
        else:
            self._rebalance.answer_sync(member, SyncReply(error=GroupError.REBALANCE_IN_PROGRESS))
            member.syncing = ticket
            if member.member_id == self._roster.leader:
                self._rebalance.assign(request.assignments, now_ms)
        return self._rebalance.outcome()

    def _sync_refusal(self, request: SyncRequest) -> GroupError | None:
        refusal = self._claim_refusal(request.claim)
        if refusal is not None:
            return refusal
        if self.state is ClassicState.PREPARING:
            return GroupError.REBALANCE_IN_PROGRESS  # whatever protocol the next generation will have
        if request.protocol_type not in (None, self._roster.protocol_type) or (
            request.protocol_name not in (None, self._rebalance.protocol_name)
        ):
            return GroupError.INCONSISTENT_GROUP_PROTOCOL
        return None

    # Requests that are answered at once

    def heartbeat(self, claim: MemberClaim, now_ms: int) -> GroupError | None:
        refusal = self._claim_refusal(claim)
        if refusal is None:
            self._seen(claim, now_ms)
            if self.state is ClassicState.PREPARING:
                return GroupError.REBALANCE_IN_PROGRESS
        return refusal

    def check_commit(self, claim: MemberClaim, now_ms: int) -> GroupError | None:
        """Whether these offsets may be stored. Accepted, a commit is a sign of life."""
        if self.state is ClassicState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        if claim.generation < 0 and self.state is ClassicState.EMPTY:
            return None  # an administrator, or a consumer that assigns by itself
        if claim.generation < 0 and not claim.member_id and claim.instance_id is None:
            return GroupError.UNKNOWN_MEMBER_ID
        refusal = self._claim_refusal(claim)
        if refusal is None:
            if self.state is ClassicState.COMPLETING:
                return GroupError.REBALANCE_IN_PROGRESS
            self._seen(claim, now_ms)
        return refusal

    def check_fetch(self, claim: MemberClaim) -> GroupError | None:
        """Whether a member may read through a door that knows groups: only what the standing assignment gives it."""
        refusal = self._claim_refusal(claim)
        if refusal is None and self.state is not ClassicState.STABLE:
            return GroupError.REBALANCE_IN_PROGRESS
        return refusal

    def check_offset_delete(self) -> GroupError | None:
        """Of a group of consumers, offsets of topics that nobody subscribes to may go; the caller looks at those."""
        if self.state is ClassicState.DEAD:
            return GroupError.GROUP_ID_NOT_FOUND
        if self.state is not ClassicState.EMPTY and self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return GroupError.NON_EMPTY_GROUP
        return None

    def _claim_refusal(self, claim: MemberClaim) -> GroupError | None:
        if self.state is ClassicState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        refusal = self._roster.refusal(claim.member_id, claim.instance_id)
        if refusal is None and claim.generation != self.generation:
            return GroupError.ILLEGAL_GENERATION
        return refusal

    def _seen(self, claim: MemberClaim, now_ms: int) -> None:
        member = self._roster.members[claim.member_id]
        if not member.is_new:
            member.seen(now_ms)

    # Leaving

    def leave(self, ticket: Ticket, leaving: Sequence[LeavingMember], now_ms: int) -> Outcome[ClassicReply]:
        """All of them leave in one step, followed by one rebalance."""
        if self.state is ClassicState.DEAD:
            self._rebalance.answer(ticket, LeaveReply(error=GroupError.COORDINATOR_NOT_AVAILABLE))
            return self._rebalance.outcome()
        size_before = len(self._roster.members)
        left = tuple(
            LeftMember(member_id=one.member_id, instance_id=one.instance_id, error=self._let_go(one)) for one in leaving
        )
        self._rebalance.answer(ticket, LeaveReply(members=left))
        self._after_leaving(size_before, now_ms)
        return self._rebalance.outcome()

    def disconnect(self, member_id: str, now_ms: int) -> Outcome[ClassicReply]:
        """The connection that a member lived on has ended: it leaves at once."""
        size_before = len(self._roster.members)
        self._let_go(LeavingMember(member_id=member_id))
        self._after_leaving(size_before, now_ms)
        return self._rebalance.outcome()

    def _let_go(self, leaving: LeavingMember) -> GroupError | None:
        if self._roster.pending.pop(leaving.member_id, None) is not None:
            return None
        if not leaving.member_id:
            known = self._roster.static_member(leaving.instance_id)
            if known is None:
                return GroupError.UNKNOWN_MEMBER_ID
            self._rebalance.drop(known.member_id)
            return None
        refusal = self._roster.refusal(leaving.member_id, leaving.instance_id)
        if refusal is None:
            self._rebalance.drop(leaving.member_id)
        return refusal

    def _after_leaving(self, size_before: int, now_ms: int) -> None:
        if len(self._roster.members) < size_before:
            self._rebalance.members_changed(now_ms)
        else:
            self._rebalance.complete_join_if_due(now_ms)  # a pending id that went may have been the last one awaited

    def rebalance(self, now_ms: int) -> Outcome[ClassicReply]:
        """Begin one though nothing has changed (a fault hook)."""
        if self._roster.members:
            self._rebalance.members_changed(now_ms)
        return self._rebalance.outcome()

    # Time and end

    def tick(self, now_ms: int) -> Outcome[ClassicReply]:
        """Do all that is due: lapsed ids and sessions first, then the phase that ran out of time."""
        size_before = len(self._roster.members)
        for member_id in [one for one, lapses_ms in self._roster.pending.items() if lapses_ms <= now_ms]:
            del self._roster.pending[member_id]
        for member in tuple(self._roster.members.values()):
            if member.deadline_ms is not None and member.deadline_ms <= now_ms:
                self._rebalance.drop(member.member_id)
        self._after_leaving(size_before, now_ms)
        self._rebalance.deadlines_passed(now_ms)
        return self._rebalance.outcome()

    def next_deadline(self) -> int | None:
        """When `tick` has something to do, if nothing else happens before."""
        deadlines = [self._rebalance.join_deadline_ms, self._rebalance.sync_deadline_ms, *self._roster.pending.values()]
        deadlines += [member.deadline_ms for member in self._roster.members.values()]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    def delete(self, now_ms: int) -> GroupError | None:
        if self.state is ClassicState.DEAD:
            return GroupError.GROUP_ID_NOT_FOUND
        if self.state is not ClassicState.EMPTY:
            return GroupError.NON_EMPTY_GROUP
        self._rebalance.die(now_ms)
        return None

    def standing(self) -> StoredGroup:
        """The group without those who have joined and heard nothing yet: wherever it goes on, they join again."""
        stored = self.stored()
        members = self._roster.members
        return replace(stored, members=tuple(one for one in stored.members if not members[one.member_id].is_new))

    def retire(self, now_ms: int) -> Outcome[ClassicReply]:
        """The group goes on as a consumer group: whoever waits here is to join that.

        Kafka says REBALANCE_IN_PROGRESS to those who wait for the answer to a join as well, which ends aiokafka's
        consumer.
        Every client tries again, under the same member id, when a coordinator is still loading."""
        for member in self._roster.members.values():
            self._rebalance.answer_join(
                member, JoinReply(error=GroupError.COORDINATOR_LOAD_IN_PROGRESS, member_id=member.member_id)
            )
        self._rebalance.die(now_ms, GroupError.REBALANCE_IN_PROGRESS)
        return self._rebalance.outcome()

    def unload(self, now_ms: int) -> Outcome[ClassicReply]:
        """This coordinator gives the group up (it stops, lost its lease, or could not store): all who wait hear so."""
        if self.state is not ClassicState.DEAD:
            self._rebalance.die(now_ms)
        return self._rebalance.outcome()
