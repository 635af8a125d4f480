"""One member of a consumer group: what it subscribes to, the partitions that it holds, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from streamhouse.core.groups.classic_messages import JoinRequest
from streamhouse.core.groups.consumer_heartbeat import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNCHANGED,
    HeartbeatRequest,
    TopicIdPartition,
)
from streamhouse.core.groups.embedded import EmbeddedSubscription
from streamhouse.core.groups.member import Protocols
from streamhouse.core.groups.outcome import GroupError

_NOTHING: frozenset[TopicIdPartition] = frozenset()


class MemberState(Enum):
    """How a member's partitions compare with its target."""

    STABLE = "stable"
    UNREVOKED_PARTITIONS = "unrevoked"  # it was told to give some up, and has not said that it did
    UNRELEASED_PARTITIONS = "unreleased"  # it waits for some that others have not given up


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMembership:
    """What a member of the classic protocol has that others have not: each says how long it may be silent."""

    session_timeout_ms: int
    protocols: Protocols


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember:
    """A member, replaced and never changed, so that before and after can be compared."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = 0
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = None
    server_assignor: str | None = None
    member_epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: frozenset[TopicIdPartition] = _NOTHING
    pending_revocation: frozenset[TopicIdPartition] = _NOTHING
    classic: ClassicMembership | None = None

    @property
    def is_classic(self) -> bool:
        return self.classic is not None

    @property
    def classic_protocol(self) -> str:
        """The protocol that a classic member is told the group uses: the one it likes best, for the group uses none."""
        assert self.classic is not None
        return self.classic.protocols[0][0]

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What nobody else may have: what it was given, and what it has not yet given back."""
        return self.assigned | self.pending_revocation

    @property
    def is_away(self) -> bool:
        """A static member between two lives of its process."""
        return self.member_epoch == STATIC_LEAVE_EPOCH

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.member_epoch == epoch

    def subscribes_like(self, other: ConsumerMember) -> bool:
        return (
            self.subscribed_topic_names == other.subscribed_topic_names
            and self.subscribed_topic_regex == other.subscribed_topic_regex
        )

    def epoch_refusal(self, request: HeartbeatRequest) -> GroupError | None:
        """Whether the epoch is one that this member can have.

        It may be one epoch behind, since the reply that carried the new one may be lost; but then it has to say what
        it owns, and own nothing beyond its assignment. A member that gave up everything joins again with epoch 0."""
        if request.member_epoch in (JOIN_EPOCH, self.member_epoch):
            return None
        behind = request.member_epoch == self.previous_epoch and not self.is_away
        if behind and request.owned is not None and request.owned <= self.assigned:
            return None
        return GroupError.FENCED_MEMBER_EPOCH

    def told(self, request: HeartbeatRequest) -> ConsumerMember:
        """The member as its heartbeat describes it."""
        names = request.subscribed_topic_names
        regex = request.subscribed_topic_regex
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=request.rack_id or self.rack_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=(
                self.rebalance_timeout_ms if request.rebalance_timeout_ms == UNCHANGED else request.rebalance_timeout_ms
            ),
            subscribed_topic_names=self.subscribed_topic_names if names is None else tuple(sorted(set(names))),
            subscribed_topic_regex=self.subscribed_topic_regex if regex is None else (regex or None),
            server_assignor=request.server_assignor or self.server_assignor,
            classic=None,
        )

    def joined(self, request: JoinRequest, subscription: EmbeddedSubscription) -> ConsumerMember:
        """The member as its join in the classic protocol describes it."""
        return replace(
            self,
            instance_id=self.instance_id if request.instance_id is None else request.instance_id,
            rack_id=subscription.rack_id,
            client_id=request.client_id,
            client_host=request.client_host,
            rebalance_timeout_ms=request.patience_ms,
            subscribed_topic_names=tuple(sorted(set(subscription.topics))),
            subscribed_topic_regex=None,
            server_assignor=None,
            classic=ClassicMembership(session_timeout_ms=request.session_timeout_ms, protocols=request.protocols),
        )

    def gone_away(self) -> ConsumerMember:
        """A static member that left for a while: it keeps its assignment, and owns nothing until it is back."""
        return replace(self, member_epoch=STATIC_LEAVE_EPOCH, state=MemberState.STABLE, pending_revocation=_NOTHING)

    def back_as(self, member_id: str) -> ConsumerMember:
        """The static member's next life: its partitions are where it left them."""
        return replace(self, member_id=member_id, member_epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
