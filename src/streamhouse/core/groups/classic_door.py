"""Who may join a classic group, and what a join does: adds a member, brings one back, or changes nothing."""

from __future__ import annotations

from dataclasses import replace

from streamhouse.core.groups.classic_messages import ClassicLimits, ClassicReply, JoinReply, JoinRequest
from streamhouse.core.groups.classic_rebalance import ClassicState, Rebalance
from streamhouse.core.groups.member import Member
from streamhouse.core.groups.outcome import GroupError, Outcome, Ticket


class Door:
    def __init__(self, limits: ClassicLimits, rebalance: Rebalance) -> None:
        self._limits = limits
        self._rebalance = rebalance
        self._roster = rebalance.roster

    def join(self, ticket: Ticket, request: JoinRequest, now_ms: int) -> Outcome[ClassicReply]:
        refusal = self._refusal(request)
        if refusal is GroupError.GROUP_MAX_SIZE_REACHED:
            self._turn_away(ticket, request, now_ms)
        elif refusal is not None:
            self._rebalance.answer(ticket, JoinReply(error=refusal, member_id=request.member_id))
        elif request.member_id:
            self._join_known(ticket, request, now_ms)
        else:
            self._join_unknown(ticket, request, now_ms)
        return self._rebalance.outcome()

    def _refusal(self, request: JoinRequest) -> GroupError | None:
        if self._rebalance.state is ClassicState.DEAD:
            return GroupError.COORDINATOR_NOT_AVAILABLE
        if not self._limits.allows_session(request.session_timeout_ms):
            return GroupError.INVALID_SESSION_TIMEOUT
        if not self._has_room_for(request):
            return GroupError.GROUP_MAX_SIZE_REACHED
        if not self._roster.supports(request.protocol_type, request.protocols):
            return GroupError.INCONSISTENT_GROUP_PROTOCOL
        return None

    def _has_room_for(self, request: JoinRequest) -> bool:
        roster, max_size = self._roster, self._limits.max_size
        if not request.member_id and len(roster.pending) >= max_size:
            return False  # ids that nobody uses take memory too
        member = roster.members.get(request.member_id)
        match self._rebalance.state:
            case ClassicState.EMPTY | ClassicState.DEAD:
                return True
            case ClassicState.PREPARING:
                # Those who are back are counted, so that a limit that was lowered turns away the last ones.
                return (member is not None and member.joining is not None) or roster.joined_count() < max_size
            case ClassicState.COMPLETING | ClassicState.STABLE:
                return member is not None or len(roster.members) < max_size

    def _turn_away(self, ticket: Ticket, request: JoinRequest, now_ms: int) -> None:
        self._roster.pending.pop(request.member_id, None)
        if request.member_id in self._roster.members:
            self._rebalance.drop(request.member_id)
        self._rebalance.answer(ticket, JoinReply(error=GroupError.GROUP_MAX_SIZE_REACHED))
        self._rebalance.complete_join_if_due(now_ms)

    def _join_unknown(self, ticket: Ticket, request: JoinRequest, now_ms: int) -> None:
        member_id = request.new_member_id
        known = self._roster.static_member(request.instance_id)
        if known is not None:
            self._replace_static(ticket, known, request, now_ms)
        elif request.instance_id is None and request.requires_member_id:
            self._roster.pending[member_id] = now_ms + request.session_timeout_ms
            self._rebalance.answer(ticket, JoinReply(error=GroupError.MEMBER_ID_REQUIRED, member_id=member_id))
        else:
            self._add(ticket, member_id, request, now_ms)

    def _join_known(self, ticket: Ticket, request: JoinRequest, now_ms: int) -> None:
        if request.member_id in self._roster.pending and request.instance_id is None:
            self._add(ticket, request.member_id, request, now_ms)
            return
        refusal = self._roster.refusal(request.member_id, request.instance_id)
        if refusal is not None:
            self._rebalance.answer(ticket, JoinReply(error=refusal, member_id=request.member_id))
            return
        member = self._roster.members[request.member_id]
        if self._asks_for_rebalance(member, request):
            self._update(ticket, member, request, now_ms)
            self._rebalance.members_changed(now_ms)
        else:
            # Perhaps the answer to its first join was lost: it hears of the current generation again.
            member.seen(now_ms)
            self._rebalance.answer(ticket, self._rebalance.joined_reply(member))

    def _asks_for_rebalance(self, member: Member, request: JoinRequest) -> bool:
        if self._rebalance.state is ClassicState.STABLE and member.member_id == self._roster.leader:
            return True  # the leader may know a reason that its metadata does not show, such as new partitions
        return self._rebalance.state is ClassicState.PREPARING or member.protocols != request.protocols

    def _add(self, ticket: Ticket, member_id: str, request: JoinRequest, now_ms: int) -> None:
        member = Member(
            member_id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.patience_ms,
            protocols=request.protocols,
            joining=ticket,
            is_new=True,
            # It sends no heartbeats before it is let in; one that went away in the meantime is not kept for ever.
            expires_ms=now_ms + self._limits.new_member_join_timeout_ms,
        )
        self._roster.add(member, request.protocol_type)
        self._rebalance.member_added()
        self._rebalance.members_changed(now_ms)

    def _update(self, ticket: Ticket, member: Member, request: JoinRequest, now_ms: int) -> None:
        self._rebalance.refuse(member, GroupError.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        member.protocols = request.protocols
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = request.patience_ms
        member.client_id = request.client_id
        member.client_host = request.client_host
        member.joining = ticket
        if not member.is_new:
            member.seen(now_ms)

    def _replace_static(self, ticket: Ticket, known: Member, request: JoinRequest, now_ms: int) -> None:
        """KIP-345: the instance came back. A stable group goes on without a rebalance if its protocol stays the same;
        changed metadata is no reason for one, because a restarted client always forgets what it owned."""
        rebalance, roster = self._rebalance, self._roster
        leader_before = roster.leader
        rebalance.refuse(known, GroupError.FENCED_INSTANCE_ID, member_id=known.member_id)
        member = rebalance.rename(known, request.new_member_id)
        self._update(ticket, member, request, now_ms)
        if rebalance.state is not ClassicState.STABLE or roster.choose_protocol() != rebalance.protocol_name:
            rebalance.members_changed(now_ms)
            return
        reply = rebalance.joined_reply(member)
        if request.supports_skipping_assignment:
            reply = replace(reply, skip_assignment=member.member_id == roster.leader)
        else:
            # An older client that led must not think that it leads: it would assign, and nobody would listen.
            reply = replace(reply, leader=leader_before or "", members=())
        rebalance.answer_join(member, reply)
        rebalance.persist = True
