"""A classic group with a clock and a drawer for answers; it fails at once if a ticket is answered twice."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import (
    ClassicLimits,
    ClassicReply,
    JoinReply,
    JoinRequest,
    LeaveReply,
    LeavingMember,
    MemberClaim,
    SyncReply,
    SyncRequest,
)
from streamhouse.core.groups.outcome import GroupError, Outcome, Ticket

SESSION_MS = 10_000
REBALANCE_MS = 60_000
RANGE = (("range", b"topics"),)


class GroupDriver:
    def __init__(self, **limits: int) -> None:
        self.limits = ClassicLimits(**({"initial_rebalance_delay_ms": 0} | limits))
        self.group = ClassicGroup("g", limits=self.limits)
        self.now_ms = 1_000
        self.replies: dict[Ticket, ClassicReply] = {}
        self.persisted = 0
        self.stored = self.group.stored()
        self._tickets = 0
        self._ids = 0

    def join(
        self,
        member_id: str = "",
        *,
        protocols: tuple[tuple[str, bytes], ...] = RANGE,
        protocol_type: str = "consumer",
        instance_id: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        requires_member_id: bool = False,
        supports_skipping_assignment: bool = True,
    ) -> Ticket:
        self._ids += not member_id
        request = JoinRequest(
            member_id=member_id,
            new_member_id=f"m{self._ids}",
            instance_id=instance_id,
            client_id="client",
            client_host="/127.0.0.1",
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=protocols,
            requires_member_id=requires_member_id,
            supports_skipping_assignment=supports_skipping_assignment,
        )
        ticket = self._ticket()
        self._take(self.group.join(ticket, request, self.now_ms))
        return ticket

    def sync(
        self,
        member_id: str,
        generation: int | None = None,
        assignments: Mapping[str, bytes] | None = None,
        *,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Ticket:
        request = SyncRequest(
            claim=self.claim(member_id, generation, instance_id),
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=assignments or {},
        )
        ticket = self._ticket()
        self._take(self.group.sync(ticket, request, self.now_ms))
        return ticket

    def leave(self, *leaving: str | LeavingMember) -> LeaveReply:
        members = [LeavingMember(member_id=one) if isinstance(one, str) else one for one in leaving]
        ticket = self._ticket()
        self._take(self.group.leave(ticket, members, self.now_ms))
        reply = self.replies[ticket]
        assert isinstance(reply, LeaveReply)
        return reply

    def heartbeat(
        self, member_id: str, generation: int | None = None, instance_id: str | None = None
    ) -> GroupError | None:
        return self.group.heartbeat(self.claim(member_id, generation, instance_id), self.now_ms)

    def commit(
        self, member_id: str, generation: int | None = None, instance_id: str | None = None
    ) -> GroupError | None:
        return self.group.check_commit(self.claim(member_id, generation, instance_id), self.now_ms)

    def fetch(self, member_id: str, generation: int | None = None) -> GroupError | None:
        return self.group.check_fetch(self.claim(member_id, generation))

    def disconnect(self, member_id: str) -> None:
        self._take(self.group.disconnect(member_id, self.now_ms))

    def unload(self) -> None:
        self._take(self.group.unload(self.now_ms))

    def advance(self, milliseconds: int) -> None:
        """Let time pass; the group is woken at each of its deadlines, as its shell would."""
        end_ms = self.now_ms + milliseconds
        while (deadline_ms := self.group.next_deadline()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            self._take(self.group.tick(self.now_ms))
        self.now_ms = end_ms

    def restart(self) -> None:
        """The coordinator dies and comes back with what is stored; requests that waited are lost with it."""
        self.group = ClassicGroup.restore(self.stored, self.now_ms, self.limits)

    def claim(self, member_id: str, generation: int | None = None, instance_id: str | None = None) -> MemberClaim:
        return MemberClaim(
            member_id=member_id,
            generation=self.group.generation if generation is None else generation,
            instance_id=instance_id,
        )

    def joined(self, ticket: Ticket) -> JoinReply:
        reply = self.replies[ticket]
        assert isinstance(reply, JoinReply)
        return reply

    def synced(self, ticket: Ticket) -> SyncReply:
        reply = self.replies[ticket]
        assert isinstance(reply, SyncReply)
        return reply

    def waits(self, ticket: Ticket) -> bool:
        return ticket not in self.replies

    def stable_with(self, count: int) -> list[str]:
        """A stable group of so many dynamic members, the leader first, each assigned `part-of-<id>`."""
        members: list[str] = []
        for _ in range(count):
            newcomer = self.join()
            tickets = [*(self.join(member) for member in members), newcomer]
            members = [self.joined(ticket).member_id for ticket in tickets]
        self.settle(members)
        return members

    def settle(self, members: list[str]) -> None:
        """All members sync; the first is the leader."""
        for member in members[1:]:
            self.sync(member)
        self.sync(members[0], assignments={member: f"part-of-{member}".encode() for member in members})

    def _ticket(self) -> Ticket:
        self._tickets += 1
        return Ticket(self._tickets)

    def _take(self, outcome: Outcome[ClassicReply]) -> None:
        if outcome.persist:
            self.persisted += 1
            self.stored = self.group.stored()
        for answer in outcome.answers:
            assert answer.ticket not in self.replies, f"ticket {answer.ticket} is answered twice"
            self.replies[answer.ticket] = answer.reply
