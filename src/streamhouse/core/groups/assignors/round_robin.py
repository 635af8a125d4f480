"""Round robin: all partitions in order are dealt to the members in order, past those who do not subscribe."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.core.groups.assignors.assignment import (
    Assignment,
    Partition,
    Subscription,
    TopicT,
    subscribers_by_topic,
)


def assign_round_robin(
    members: Mapping[str, Subscription[TopicT]], partitions: Mapping[TopicT, int], previous: Assignment[TopicT]
) -> Assignment[TopicT]:
    owned: dict[str, list[Partition[TopicT]]] = {member: [] for member in sorted(members)}
    circle = list(owned)
    place = 0
    for topic, subscribers in subscribers_by_topic(members, partitions).items():
        subscribed = frozenset(subscribers)
        for partition in range(partitions[topic]):
            while circle[place] not in subscribed:
                place = (place + 1) % len(circle)
            owned[circle[place]].append((topic, partition))
            place = (place + 1) % len(circle)
    return {member: tuple(mine) for member, mine in owned.items()}
