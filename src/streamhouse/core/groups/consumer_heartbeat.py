"""What a member of a consumer group says in a heartbeat, and what it is told (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias
from uuid import UUID

from streamhouse.core.groups.assignors.assignment import Partition
from streamhouse.core.groups.group_kind import MigrationPolicy
from streamhouse.core.groups.outcome import GroupError, Refusal

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
STATIC_LEAVE_EPOCH = -2  # "I shall be back under the same instance id": the partitions are kept for the session
UNCHANGED = -1

TopicIdPartition: TypeAlias = Partition[UUID]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLimits:
    """The knobs of consumer groups; the defaults are Kafka's."""

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    max_size: int = 2**31 - 1
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL

    def configured(self, config: Mapping[str, str]) -> ConsumerLimits:
        """As a group's own configs say, by Kafka's names for them."""
        if not config:
            return self
        return replace(
            self,
            session_timeout_ms=int(config.get("consumer.session.timeout.ms", self.session_timeout_ms)),
            heartbeat_interval_ms=int(config.get("consumer.heartbeat.interval.ms", self.heartbeat_interval_ms)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatRequest:
    """A heartbeat; None and -1 mean "as I said before", so that only joins and repairs carry everything."""

    member_id: str
    member_epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED
    subscribed_topic_names: tuple[str, ...] | None = None
    subscribed_topic_regex: str | None = None  # "" takes an earlier one back
    server_assignor: str | None = None
    owned: frozenset[TopicIdPartition] | None = None
    client_id: str = ""
    client_host: str = ""

    @property
    def is_full(self) -> bool:
        """Whether it says everything: the member joins, or does not know what became of its earlier heartbeat."""
        if self.member_epoch == JOIN_EPOCH:
            return True
        subscribes = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
        return subscribes and self.rebalance_timeout_ms != UNCHANGED and self.owned is not None

    def refusal(self) -> GroupError | None:
        """Why it could not be right in any state of the group."""
        if not self.member_id or self.instance_id == "" or self.member_epoch < STATIC_LEAVE_EPOCH:
            return GroupError.INVALID_REQUEST
        if self.rebalance_timeout_ms < UNCHANGED:
            return GroupError.INVALID_REQUEST
        if self.member_epoch == STATIC_LEAVE_EPOCH and self.instance_id is None:
            return GroupError.INVALID_REQUEST
        if self.member_epoch == JOIN_EPOCH:
            subscribes = self.subscribed_topic_names is not None or self.subscribed_topic_regex is not None
            if self.rebalance_timeout_ms == UNCHANGED or self.owned or not subscribes:
                return GroupError.INVALID_REQUEST
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeartbeatReply:
    """`assignment` is everything that the member may own from now on, or None: nothing new."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int
    assignment: tuple[TopicIdPartition, ...] | None


class Decision(NamedTuple):
    """A heartbeat's answer; if `persist`, the group's state is stored before the answer is given."""

    reply: HeartbeatReply | GroupError | Refusal
    persist: bool
