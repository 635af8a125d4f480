"""What members of a classic group ask and what they are told, free of any wire format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from streamhouse.core.groups.member import Protocols
from streamhouse.core.groups.outcome import GroupError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicLimits:
    """The knobs of classic groups; the defaults are Kafka's."""

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    new_member_join_timeout_ms: int = 300_000
    max_size: int = 2**31 - 1

    def allows_session(self, timeout_ms: int) -> bool:
        return self.min_session_timeout_ms <= timeout_ms <= self.max_session_timeout_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberClaim:
    """Who a request says it comes from."""

    member_id: str
    generation: int
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinRequest:
    """`new_member_id` is the id that this member gets if it has none yet (`member_id` is empty)."""

    member_id: str
    new_member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    instance_id: str | None = None
    requires_member_id: bool = True  # KIP-394: an unknown member is told its id first and joins with it
    supports_skipping_assignment: bool = True  # KIP-814

    @property
    def patience_ms(self) -> int:
        """How long it has to rejoin; the oldest clients have one time-out for everything."""
        return self.rebalance_timeout_ms if self.rebalance_timeout_ms > 0 else self.session_timeout_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedMember:
    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinReply:
    """Only the leader gets `members`: it assigns, unless `skip_assignment` says that the assignment stands."""

    error: GroupError | None = None
    member_id: str = ""
    generation: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str = ""
    members: tuple[JoinedMember, ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncRequest:
    """Protocol type and name are None where the client's version does not send them."""

    claim: MemberClaim
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReply:
    error: GroupError | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavingMember:
    """A static member may be named by its instance id alone: that is how an administrator removes it."""

    member_id: str
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftMember:
    member_id: str
    instance_id: str | None
    error: GroupError | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveReply:
    error: GroupError | None = None
    members: tuple[LeftMember, ...] = ()


ClassicReply: TypeAlias = JoinReply | SyncReply | LeaveReply
