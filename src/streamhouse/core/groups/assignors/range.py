"""Range, as Flume states it: each topic is divided evenly, the remainder goes to the first members alphabetically."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamhouse.core.groups.assignors.assignment import (
    Assignment,
    Partition,
    Subscription,
    TopicT,
    subscribers_by_topic,
)


def range_leader(members: Iterable[str]) -> str:
    """Flume's leader: the first alphabetically."""
    return min(members)


def assign_range(
    members: Mapping[str, Subscription[TopicT]], partitions: Mapping[TopicT, int], previous: Assignment[TopicT]
) -> Assignment[TopicT]:
    owned: dict[str, list[Partition[TopicT]]] = {member: [] for member in sorted(members)}
    for topic, subscribers in subscribers_by_topic(members, partitions).items():
        share, remainder = divmod(partitions[topic], len(subscribers))
        start = 0
        for place, member in enumerate(subscribers):
            end = start + share + (place < remainder)
            owned[member] += [(topic, partition) for partition in range(start, end)]
            start = end
    return {member: tuple(mine) for member, mine in owned.items()}
