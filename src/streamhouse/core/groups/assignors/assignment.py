"""What every assignor takes and gives: subscriptions and partition counts in, each member's partitions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar
from uuid import UUID

TopicT = TypeVar("TopicT", str, UUID)
"""A topic's key: its name or its id. Both sort, so that every process gives the same answer."""

Partition: TypeAlias = tuple[TopicT, int]
Assignment: TypeAlias = Mapping[str, tuple[Partition[TopicT], ...]]
"""Each member's partitions, sorted; every member is in it, those without partitions too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription(Generic[TopicT]):
    topics: tuple[TopicT, ...]


class Assignor(Protocol):
    """One way to divide partitions. `previous` may name members and partitions that are gone, and may be empty."""

    def __call__(
        self,
        members: Mapping[str, Subscription[TopicT]],
        partitions: Mapping[TopicT, int],
        previous: Assignment[TopicT],
    ) -> Assignment[TopicT]: ...


def subscribers_by_topic(
    members: Mapping[str, Subscription[TopicT]], partitions: Mapping[TopicT, int]
) -> dict[TopicT, list[str]]:
    """The subscribed topics that exist, in order, each with its subscribers in order."""
    subscribers: dict[TopicT, list[str]] = {}
    for member in sorted(members):
        for topic in dict.fromkeys(members[member].topics):
            if partitions.get(topic, 0) > 0:
                subscribers.setdefault(topic, []).append(member)
    return {topic: subscribers[topic] for topic in sorted(subscribers)}
