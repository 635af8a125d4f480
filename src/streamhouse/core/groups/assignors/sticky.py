"""Sticky: as balanced as the subscriptions allow, and of all such assignments one that moves little.

Every member keeps what it had and may still have; what has no owner goes to the least loaded subscriber; then, while
some member has two more than another, one partition goes from the fuller to the emptier, directly or through members in
between if they share no topic (A gives to B, B gives another to C). No such path is left exactly when the loads cannot
be evened further. Topics with the same subscribers are one pool: what matters for a path is who may take a partition.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Generic

from streamhouse.core.groups.assignors.assignment import (
    Assignment,
    Partition,
    Subscription,
    TopicT,
    subscribers_by_topic,
)


def assign_sticky(
    members: Mapping[str, Subscription[TopicT]], partitions: Mapping[TopicT, int], previous: Assignment[TopicT]
) -> Assignment[TopicT]:
    sharing = _Sharing(sorted(members), subscribers_by_topic(members, partitions), partitions)
    sharing.keep(previous)
    sharing.fill()
    sharing.even_out()
    return sharing.assignment()


class _Pool(Generic[TopicT]):
    """Topics with the same subscribers, and who holds which of their partitions, those to move first at the end."""

    def __init__(self, subscribers: tuple[str, ...]) -> None:
        self.subscribers = subscribers
        self.topics: list[TopicT] = []
        self.held: dict[str, list[Partition[TopicT]]] = {member: [] for member in subscribers}


class _Sharing(Generic[TopicT]):
    def __init__(
        self, members: list[str], subscribers: dict[TopicT, list[str]], partitions: Mapping[TopicT, int]
    ) -> None:
        self._partitions: Mapping[TopicT, int] = partitions
        self._load = dict.fromkeys(members, 0)
        self._pools: dict[tuple[str, ...], _Pool[TopicT]] = {}
        self._pool_of: dict[TopicT, _Pool[TopicT]] = {}
        self._taken: dict[Partition[TopicT], None] = {}
        for topic, who in subscribers.items():
            pool = self._pools.setdefault(tuple(who), _Pool(tuple(who)))
            pool.topics.append(topic)
            self._pool_of[topic] = pool
        self._pools_of: dict[str, list[_Pool[TopicT]]] = {member: [] for member in members}
        for pool in self._pools.values():
            for member in pool.subscribers:
                self._pools_of[member].append(pool)

    def keep(self, previous: Assignment[TopicT]) -> None:
        for member in self._load:
            for topic, partition in sorted(previous.get(member, ())):
                pool = self._pool_of.get(topic)
                exists = pool is not None and 0 <= partition < self._partitions[topic]
                if pool is not None and exists and member in pool.held and (topic, partition) not in self._taken:
                    self._give(pool, member, (topic, partition))

    def fill(self) -> None:
        """Those with the fewest possible owners first: the others can still even out what they cause."""
        for pool in sorted(self._pools.values(), key=lambda pool: (len(pool.subscribers), pool.subscribers)):
            least = [(self._load[member], member) for member in pool.subscribers]
            heapq.heapify(least)
            for topic in pool.topics:
                for partition in range(self._partitions[topic]):
                    if (topic, partition) not in self._taken:
                        load, member = least[0]
                        self._give(pool, member, (topic, partition))
                        heapq.heapreplace(least, (load + 1, member))

    def even_out(self) -> None:
        """From the fullest down, everyone gives what can be given. Who finds no taker need not look again: whoever
        gives later was out of his reach, and so is all that they change."""
        fullest = [(-load, member) for member, load in self._load.items()]
        emptiest = [(load, member) for member, load in self._load.items()]
        heapq.heapify(fullest)
        heapq.heapify(emptiest)
        while fullest:
            while emptiest[0][0] != self._load[emptiest[0][1]]:
                heapq.heappop(emptiest)  # it has taken or given since; its newer entry counts
            negative_load, giver = heapq.heappop(fullest)
            if -negative_load != self._load[giver]:
                continue
            if self._load[giver] - emptiest[0][0] < 2:
                break
            path = self._path(giver, emptiest[0][1])
            if path:
                taker = path[-1][2]
                for source, pool, target in path:
                    pool.held[target].append(pool.held[source].pop())
                self._load[giver] -= 1
                self._load[taker] += 1
                for member in (giver, taker):
                    heapq.heappush(fullest, (-self._load[member], member))
                    heapq.heappush(emptiest, (self._load[member], member))

    def _path(self, source: str, emptiest: str) -> list[tuple[str, _Pool[TopicT], str]]:
        """The shortest chain of gifts that ends at a member with at least two partitions less; [] if there is none."""
        for pool in self._pools_of[source]:
            if pool.held[source] and emptiest in pool.held:
                return [(source, pool, emptiest)]  # what the search would find too, for most groups all that it finds
        came_by: dict[str, tuple[str, _Pool[TopicT]] | None] = {source: None}
        spread: dict[tuple[str, ...], None] = {}
        level = [source]
        while level:
            reached: list[str] = []
            for giver in level:
                for pool in self._pools_of[giver]:
                    if pool.held[giver] and pool.subscribers not in spread:
                        spread[pool.subscribers] = None
                        for member in pool.subscribers:
                            if member not in came_by:
                                came_by[member] = (giver, pool)
                                reached.append(member)
            taker = min(reached, key=lambda member: (self._load[member], member), default=source)
            if self._load[taker] <= self._load[source] - 2:
                path = []
                step, at = came_by[taker], taker
                while step is not None:
                    path.append((step[0], step[1], at))
                    at = step[0]
                    step = came_by[at]
                return path[::-1]
            level = reached
        return []

    def assignment(self) -> dict[str, tuple[Partition[TopicT], ...]]:
        return {
            member: tuple(sorted(held for pool in pools for held in pool.held[member]))
            for member, pools in self._pools_of.items()
        }

    def _give(self, pool: _Pool[TopicT], member: str, partition: Partition[TopicT]) -> None:
        self._taken[partition] = None
        pool.held[member].append(partition)
        self._load[member] += 1
