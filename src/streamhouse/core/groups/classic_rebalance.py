"""How a classic group goes from one generation to the next: its states, its phases and their deadlines.

Empty ──join──▶ PreparingRebalance ──all joined, or time is up──▶ CompletingRebalance ──leader's sync──▶ Stable
  ▲                │      ▲                                               │                               │
  └──nobody left───┘      └────── a member comes, goes or changes ────────┴───────────────────────────────┘

A generation begins when the join phase ends: in that one step all who joined are answered with it, all who did not are
removed, and every earlier assignment is void. Answers collect in `answers` until the event is over. The new generation
is stored before anyone hears of it (Kafka stores it only with its assignment), so that no restart gives a number twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from streamhouse.core.groups.classic_messages import ClassicLimits, ClassicReply, JoinedMember, JoinReply, SyncReply
from streamhouse.core.groups.classic_roster import Roster
from streamhouse.core.groups.member import Member
from streamhouse.core.groups.outcome import Answer, GroupError, Outcome, Ticket

_MIN_POSTPONEMENT_MS = 1_000


class ClassicState(Enum):
    """The names are those that Kafka prints."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_BEFORE = {
    ClassicState.EMPTY: (ClassicState.PREPARING,),
    ClassicState.PREPARING: (ClassicState.EMPTY, ClassicState.COMPLETING, ClassicState.STABLE),
    ClassicState.COMPLETING: (ClassicState.PREPARING,),
    ClassicState.STABLE: (ClassicState.COMPLETING,),
    ClassicState.DEAD: tuple(ClassicState),
}


class Rebalance:
    def __init__(self, limits: ClassicLimits, generation: int) -> None:
        self._limits = limits
        self.roster = Roster()
        self.state = ClassicState.EMPTY
        self.state_since_ms = 0
        self.generation = generation
        self.protocol_name: str | None = None
        self.pending_sync: dict[str, None] = {}
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        self.answers: list[Answer[ClassicReply]] = []
        self.persist = False
        self._initial_until_ms: int | None = None  # while the first members gather: the longest that they may
        self._member_added = False

    # Answers

    def outcome(self) -> Outcome[ClassicReply]:
        outcome = Outcome(answers=tuple(self.answers), persist=self.persist)
        self.answers.clear()
        self.persist = False
        return outcome

    def answer(self, ticket: Ticket, reply: ClassicReply) -> None:
        self.answers.append(Answer(ticket=ticket, reply=reply))

    def answer_join(self, member: Member, reply: JoinReply) -> None:
        if member.joining is not None:
            self.answer(member.joining, reply)
            member.joining = None

    def answer_sync(self, member: Member, reply: SyncReply) -> None:
        if member.syncing is not None:
            self.answer(member.syncing, reply)
            member.syncing = None

    def refuse(self, member: Member, error: GroupError, *, member_id: str = "") -> None:
        """Whatever the member waits for is answered with an error."""
        self.answer_join(member, JoinReply(error=error, member_id=member_id))
        self.answer_sync(member, SyncReply(error=error))

    def joined_reply(self, member: Member) -> JoinReply:
        """The current generation, as the member sees it."""
        leads = member.member_id == self.roster.leader
        return JoinReply(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.roster.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.roster.leader or "",
            members=self._joined_members() if leads else (),
        )

    def synced_reply(self, member: Member) -> SyncReply:
        return SyncReply(
            protocol_type=self.roster.protocol_type, protocol_name=self.protocol_name, assignment=member.assignment
        )

    # Members

    def member_added(self) -> None:
        """A newcomer was added: the first members of a group wait for more like it."""
        self._member_added = True

    def drop(self, member_id: str) -> None:
        """A waiting member that is dropped and still lives will join again, as a new one."""
        self.refuse(self.roster.members[member_id], GroupError.UNKNOWN_MEMBER_ID)
        self.roster.remove(member_id)
        self.pending_sync.pop(member_id, None)

    def rename(self, member: Member, new_member_id: str) -> Member:
        if member.member_id in self.pending_sync:
            del self.pending_sync[member.member_id]
            self.pending_sync[new_member_id] = None
        return self.roster.rename(member, new_member_id)

    # Phases

    def members_changed(self, now_ms: int) -> None:
        """Begin a rebalance, or go on with the one that is under way."""
        if self.state is ClassicState.PREPARING:
            self.complete_join_if_due(now_ms)
        elif self.state is not ClassicState.DEAD:
            self._prepare(now_ms)

    def _prepare(self, now_ms: int) -> None:
        first = self.state is ClassicState.EMPTY
        if self.state is ClassicState.COMPLETING:
            for member in self.roster.members.values():
                if member.syncing is not None:
                    self.answer_sync(member, SyncReply(error=GroupError.REBALANCE_IN_PROGRESS))
                    member.seen(now_ms)
        self.pending_sync.clear()
        self.sync_deadline_ms = None
        self._become(ClassicState.PREPARING, now_ms)
        delay_ms = self._limits.initial_rebalance_delay_ms
        patience_ms = self.roster.rebalance_timeout_ms()
        if first and delay_ms > 0:
            self._member_added = False
            self._initial_until_ms = now_ms + max(delay_ms, patience_ms)
            self.join_deadline_ms = now_ms + delay_ms
        else:
            self.join_deadline_ms = now_ms + patience_ms
            self.complete_join_if_due(now_ms)

    def complete_join_if_due(self, now_ms: int) -> None:
        gathering = self._initial_until_ms is not None and self.roster.members
        if self.state is ClassicState.PREPARING and not gathering and self.roster.all_joined():
            self._complete_join(now_ms)

    def deadlines_passed(self, now_ms: int) -> None:
        if self.join_deadline_ms is not None and self.join_deadline_ms <= now_ms:
            until_ms = self._initial_until_ms
            if until_ms is not None and self._member_added and now_ms < until_ms:
                self._member_added = False
                self.join_deadline_ms = min(now_ms + self._limits.initial_rebalance_delay_ms, until_ms)
            else:
                self._complete_join(now_ms)
        if self.sync_deadline_ms is not None and self.sync_deadline_ms <= now_ms:
            for member_id in tuple(self.pending_sync):
                self.drop(member_id)
            self._prepare(now_ms)

    def _complete_join(self, now_ms: int) -> None:
        for member in tuple(self.roster.members.values()):
            if member.joining is None and member.instance_id is None:
                self.roster.remove(member.member_id)
        if self.roster.members and not self.roster.elect_joined_leader():
            # Only static members are left and none is back: they keep their places until their sessions end.
            self._initial_until_ms = None
            self.join_deadline_ms = now_ms + max(self.roster.rebalance_timeout_ms(), _MIN_POSTPONEMENT_MS)
            return
        self.join_deadline_ms = None
        self._initial_until_ms = None
        self.generation += 1
        self.persist = True
        if not self.roster.members:
            self.protocol_name = None
            self._become(ClassicState.EMPTY, now_ms)
            return
        self.protocol_name = self.roster.choose_protocol()
        self._become(ClassicState.COMPLETING, now_ms)
        self.await_syncs(now_ms)
        for member in self.roster.members.values():
            self.answer_join(member, self.joined_reply(member))
            member.assignment = b""
            member.is_new = False
            member.seen(now_ms)

    def await_joins(self, now_ms: int) -> None:
        """A group that is read begins where a rebalance does."""
        self.state = ClassicState.PREPARING
        self.join_deadline_ms = now_ms + self.roster.rebalance_timeout_ms()

    def await_syncs(self, now_ms: int) -> None:
        self.pending_sync = dict.fromkeys(self.roster.members)
        self.sync_deadline_ms = now_ms + self.roster.rebalance_timeout_ms()

    def synced(self, member: Member) -> None:
        """The member has asked for its assignment; when all have, nobody is late any more."""
        self.pending_sync.pop(member.member_id, None)
        if not self.pending_sync:
            self.sync_deadline_ms = None

    def assign(self, assignments: Mapping[str, bytes], now_ms: int) -> None:
        """The leader has decided: every waiting member hears of it in one step."""
        self._become(ClassicState.STABLE, now_ms)
        self.persist = True
        for member in self.roster.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            if member.syncing is not None:
                self.answer_sync(member, self.synced_reply(member))
                member.seen(now_ms)

    def die(self, now_ms: int, error: GroupError = GroupError.NOT_COORDINATOR) -> None:
        """The group ends here: those who wait are to look for its coordinator again, or what else the error says."""
        for member in tuple(self.roster.members.values()):
            self.refuse(member, error, member_id=member.member_id)
            self.roster.remove(member.member_id)
        self.roster.pending.clear()
        self.pending_sync.clear()
        self.join_deadline_ms = self.sync_deadline_ms = self._initial_until_ms = None
        self._become(ClassicState.DEAD, now_ms)

    def _become(self, state: ClassicState, now_ms: int) -> None:
        assert self.state in _BEFORE[state], f"a group does not go from {self.state.value} to {state.value}"
        self.state = state
        self.state_since_ms = now_ms

    def _joined_members(self) -> tuple[JoinedMember, ...]:
        return tuple(
            JoinedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self.roster.members.values()
        )
