"""A group with members goes from one protocol to the other: what is stored of it, said in the other's terms.

Nobody notices but by a rebalance. Generations and epochs are one row of numbers; offsets belong to the group id. What a
member may still hold when its group is converted is its own until it says otherwise: no partition has two owners on the
way."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.core.groups.classic_snapshot import StoredGroup, StoredMember
from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_member import ClassicMembership, ConsumerMember
from streamhouse.core.groups.consumer_snapshot import StoredConsumerGroup
from streamhouse.core.groups.consumer_target import TargetAssignment, Topics
from streamhouse.core.groups.embedded import (
    CONSUMER_PROTOCOL_TYPE,
    EmbeddedProtocol,
    EmbeddedSubscription,
    NamedPartition,
)
from streamhouse.core.groups.named_partitions import identify, name

MAX_NAMED_TOGETHER = 100_000
"""Topics and partitions, by all members of a group that is converted: it is done in one go, while others wait."""


def to_consumer_group(stored: StoredGroup, topics: Topics, embedded: EmbeddedProtocol) -> StoredConsumerGroup | None:
    """The classic group as a consumer group of classic members; None if they are not consumers, or name too much."""
    if stored.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    subscriptions: dict[str, EmbeddedSubscription] = {}
    assignments: dict[str, tuple[NamedPartition, ...]] = {}
    room = MAX_NAMED_TOGETHER
    for member in stored.members:
        subscription = embedded.read_subscription(_metadata(member, stored.protocol_name))
        if subscription is None:
            return None
        assignment = embedded.read_assignment(member.assignment)
        room -= len(subscription.topics) + len(subscription.owned) + len(assignment)
        if room < 0:
            return None
        subscriptions[member.member_id] = subscription
        assignments[member.member_id] = assignment
    holdings = _holdings(subscriptions, assignments, topics)
    members = tuple(
        ConsumerMember(
            member_id=member.member_id,
            instance_id=member.instance_id,
            rack_id=subscriptions[member.member_id].rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            subscribed_topic_names=tuple(sorted(set(subscriptions[member.member_id].topics))),
            member_epoch=stored.generation,
            previous_epoch=stored.generation,
            assigned=holdings[member.member_id],
            classic=ClassicMembership(session_timeout_ms=member.session_timeout_ms, protocols=member.protocols),
        )
        for member in stored.members
    )
    return StoredConsumerGroup(
        group_id=stored.group_id,
        group_epoch=stored.generation,
        # What the members have is where they start from. For which topics it was worked out is not known here, so that
        # the first look at the topics asks for a target.
        target=TargetAssignment(epoch=stored.generation, partitions=holdings),
        state_since_ms=stored.state_since_ms,
        members=members,
    )


def to_classic_group(stored: StoredConsumerGroup, topics: Topics, embedded: EmbeddedProtocol) -> StoredGroup:
    """The consumer group, of which only classic members are left, as a classic group that is to rebalance."""
    return StoredGroup(
        group_id=stored.group_id,
        generation=stored.group_epoch,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=None,
        leader=stored.members[0].member_id,
        assigned=False,
        rebalancing=True,
        state_since_ms=stored.state_since_ms,
        members=tuple(_classic_member(member, topics, embedded) for member in stored.members),
    )


def _classic_member(member: ConsumerMember, topics: Topics, embedded: EmbeddedProtocol) -> StoredMember:
    assert member.classic is not None, "only classic members are in a classic group"
    return StoredMember(
        member_id=member.member_id,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        session_timeout_ms=member.classic.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        protocols=member.classic.protocols,
        # Nobody is told this; it says what the member holds if the group is converted again before it has rebalanced.
        assignment=embedded.write_assignment(name(member.held, topics), member.classic.protocols[0][1]),
    )


def _holdings(
    subscriptions: Mapping[str, EmbeddedSubscription],
    assignments: Mapping[str, tuple[NamedPartition, ...]],
    topics: Topics,
) -> dict[str, frozenset[TopicIdPartition]]:
    """What each member may hold: what it was assigned, and what it owned when it joined, if that went to nobody else.

    An assignor may have given a partition to several, which a consumer group never does: the first one has it."""
    given: dict[TopicIdPartition, str] = {}
    for member_id, assignment in assignments.items():
        for partition in identify(assignment, topics):
            given.setdefault(partition, member_id)
    for member_id, subscription in subscriptions.items():
        for partition in identify(subscription.owned, topics):
            given.setdefault(partition, member_id)
    held: dict[str, set[TopicIdPartition]] = {member_id: set() for member_id in subscriptions}
    for partition, member_id in given.items():
        held[member_id].add(partition)
    return {member_id: frozenset(partitions) for member_id, partitions in held.items()}


def _metadata(member: StoredMember, protocol_name: str | None) -> bytes:
    """Members send the same subscription with every protocol that they speak."""
    return dict(member.protocols).get(protocol_name or "", member.protocols[0][1])
