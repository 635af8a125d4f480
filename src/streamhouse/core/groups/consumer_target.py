"""What a consumer group is heading for: which member should have which partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from streamhouse.core.groups.assignors.assignment import Assignor, Subscription
from streamhouse.core.groups.assignors.range import assign_range
from streamhouse.core.groups.assignors.sticky import assign_sticky
from streamhouse.core.groups.consumer_heartbeat import TopicIdPartition
from streamhouse.core.groups.consumer_member import ConsumerMember
from streamhouse.core.groups.consumer_pattern import TopicPattern

DEFAULT_ASSIGNOR = "uniform"
ASSIGNORS: Mapping[str, Assignor] = {DEFAULT_ASSIGNOR: assign_sticky, "range": assign_range}  # Kafka's two


class TopicShape(NamedTuple):
    topic_id: UUID
    partition_count: int


Topics = Mapping[str, TopicShape]
"""Every topic that exists, by name, as the shell sees them at the time of an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriptions:
    """A group's subscriptions resolved against the topics that exist."""

    members: Mapping[str, tuple[UUID, ...]]
    partition_counts: Mapping[UUID, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAssignment:
    """The partitions that each member should have as of an epoch, and the topics as they were then."""

    epoch: int
    partitions: Mapping[str, frozenset[TopicIdPartition]] = field(default_factory=dict)
    partition_counts: Mapping[UUID, int] = field(default_factory=dict)

    def of(self, member_id: str) -> frozenset[TopicIdPartition]:
        return self.partitions.get(member_id, frozenset())


class PatternCache:
    """The compiled patterns that a group's members use."""

    def __init__(self) -> None:
        self._patterns: dict[str, TopicPattern] = {}

    def compiled(self, text: str) -> TopicPattern:
        """Raises InvalidInput if it is not a pattern."""
        pattern = self._patterns.get(text)
        if pattern is None:
            pattern = self._patterns[text] = TopicPattern(text)
        return pattern

    def keep_only(self, used: frozenset[str]) -> None:
        self._patterns = {text: pattern for text, pattern in self._patterns.items() if text in used}


def resolve_subscriptions(members: Iterable[ConsumerMember], topics: Topics, patterns: PatternCache) -> Subscriptions:
    """Each member's topics, by name and by pattern; names of topics that do not exist are left for later."""
    by_pattern: dict[str, frozenset[str]] = {}
    resolved: dict[str, tuple[UUID, ...]] = {}
    counts: dict[UUID, int] = {}
    for member in members:
        names = {name for name in member.subscribed_topic_names if name in topics}
        regex = member.subscribed_topic_regex
        if regex is not None:
            if regex not in by_pattern:
                matches = patterns.compiled(regex).matches
                by_pattern[regex] = frozenset(name for name in topics if matches(name))
            names |= by_pattern[regex]
        shapes = [topics[name] for name in sorted(names)]
        resolved[member.member_id] = tuple(shape.topic_id for shape in shapes)
        counts.update(shapes)
    patterns.keep_only(frozenset(by_pattern))
    return Subscriptions(members=resolved, partition_counts=counts)


def preferred_assignor(members: Iterable[ConsumerMember]) -> str:
    """The assignor that most members ask for; of several, the first by name."""
    votes = Counter(member.server_assignor for member in members if member.server_assignor is not None)
    return min(votes, key=lambda name: (-votes[name], name), default=DEFAULT_ASSIGNOR)


def next_target(
    *, epoch: int, assignor: str, subscriptions: Subscriptions, previous: TargetAssignment
) -> TargetAssignment:
    """The target for an epoch, as near to the previous one as the assignor can make it."""
    assignment = ASSIGNORS[assignor](
        {member_id: Subscription(topics=topics) for member_id, topics in subscriptions.members.items()},
        subscriptions.partition_counts,
        {member_id: tuple(sorted(partitions)) for member_id, partitions in previous.partitions.items()},
    )
    return TargetAssignment(
        epoch=epoch,
        partitions={member_id: frozenset(partitions) for member_id, partitions in assignment.items()},
        partition_counts=subscriptions.partition_counts,
    )
