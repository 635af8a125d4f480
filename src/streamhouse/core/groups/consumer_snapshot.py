"""What of a consumer group is stored and shown: enough to come back after a restart with nobody noticing."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum

from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_member import ConsumerMember
from streamhouse.core.groups.consumer_target import TargetAssignment


class ConsumerState(Enum):
    """A consumer group's state, as Kafka names it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"  # its members or topics changed, and the target has still to follow
    RECONCILING = "Reconciling"  # some member is not where the target wants it
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredConsumerGroup:
    """A group as of now; time-outs are not part of it, since they start again when it is loaded."""

    group_id: str
    group_epoch: int
    target: TargetAssignment
    state_since_ms: int
    members: tuple[ConsumerMember, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumerMember:
    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    member_epoch: int
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    assigned: tuple[TopicIdPartition, ...]
    target: tuple[TopicIdPartition, ...]
    is_classic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupDescription:
    group_id: str
    state: ConsumerState
    group_epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumerMember, ...]


def state_of(members: Collection[ConsumerMember], group_epoch: int, target_epoch: int) -> ConsumerState:
    if not members:
        return ConsumerState.EMPTY
    if group_epoch > target_epoch:
        return ConsumerState.ASSIGNING
    if all(member.is_reconciled_to(target_epoch) for member in members):
        return ConsumerState.STABLE
    return ConsumerState.RECONCILING


def describe_members(
    members: Iterable[ConsumerMember], target: TargetAssignment
) -> tuple[DescribedConsumerMember, ...]:
    return tuple(
        DescribedConsumerMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_epoch=member.member_epoch,
            subscribed_topic_names=member.subscribed_topic_names,
            subscribed_topic_regex=member.subscribed_topic_regex,
            assigned=tuple(sorted(member.assigned)),
            target=tuple(sorted(target.of(member.member_id))),
            is_classic=member.is_classic,
        )
        for member in members
    )
