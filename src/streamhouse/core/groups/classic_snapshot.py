"""What of a classic group is stored and shown: enough to come back after a restart with nobody noticing."""

from __future__ import annotations

from dataclasses import dataclass

from streamhouse.core.groups.classic_rebalance import ClassicState, Rebalance
from streamhouse.core.groups.member import Member, Protocols


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredGroup:
    """A group as of its current generation; `assigned` tells Stable from CompletingRebalance, and `rebalancing` says
    that its members are to join again before anything else: it was a consumer group until now."""

    group_id: str
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    assigned: bool
    state_since_ms: int
    members: tuple[StoredMember, ...]
    rebalancing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedMember:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """Protocol, metadata and assignments are those of a stable group; before that there are none to show."""

    group_id: str
    state: ClassicState
    generation: int
    protocol_type: str
    protocol_name: str
    leader: str | None
    members: tuple[DescribedMember, ...]


def store(group_id: str, rebalance: Rebalance) -> StoredGroup:
    roster = rebalance.roster
    return StoredGroup(
        group_id=group_id,
        generation=rebalance.generation,
        protocol_type=roster.protocol_type,
        protocol_name=rebalance.protocol_name,
        leader=roster.leader,
        assigned=rebalance.state is ClassicState.STABLE,
        rebalancing=rebalance.state is ClassicState.PREPARING,
        state_since_ms=rebalance.state_since_ms,
        members=tuple(
            StoredMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=member.protocols,
                assignment=member.assignment,
            )
            for member in roster.members.values()
        ),
    )


def load(stored: StoredGroup, rebalance: Rebalance, now_ms: int) -> None:
    """Fill a new group: sessions start again at full length, since no heartbeat could have come in between."""
    roster = rebalance.roster
    for member in stored.members:
        roster.add(
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                protocols=member.protocols,
                assignment=member.assignment,
                expires_ms=now_ms + member.session_timeout_ms,
            ),
            stored.protocol_type or "",
        )
    roster.leader = stored.leader
    roster.protocol_type = stored.protocol_type
    rebalance.protocol_name = stored.protocol_name
    rebalance.state_since_ms = stored.state_since_ms
    if stored.rebalancing:
        rebalance.await_joins(now_ms)
    elif stored.members:
        rebalance.state = ClassicState.STABLE if stored.assigned else ClassicState.COMPLETING
        if not stored.assigned:
            rebalance.await_syncs(now_ms)


def describe(group_id: str, rebalance: Rebalance) -> GroupDescription:
    stable = rebalance.state is ClassicState.STABLE
    return GroupDescription(
        group_id=group_id,
        state=rebalance.state,
        generation=rebalance.generation,
        protocol_type=rebalance.roster.protocol_type or "",
        protocol_name=(rebalance.protocol_name or "") if stable else "",
        leader=rebalance.roster.leader,
        members=tuple(
            DescribedMember(
                member_id=member.member_id,
                instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                metadata=member.metadata(rebalance.protocol_name) if stable else b"",
                assignment=member.assignment if stable else b"",
            )
            for member in rebalance.roster.members.values()
        ),
    )
