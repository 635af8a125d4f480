"""Which live agents may lead a partition, and whom the ring names for it or for a shard of group coordinators."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from streamhouse.core.placement.ring import Ring, partition_key, shard_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A live agent, and what decides which partitions it may lead."""

    agent_id: str
    zone: str
    agent_group: str


class Pool:
    """Agents that may lead a topic, in the order of their ids, and their ring."""

    __slots__ = ("_ring", "agent_ids", "members")

    def __init__(self, agent_ids: Iterable[str]) -> None:
        self.agent_ids = tuple(sorted(agent_ids))
        self.members = frozenset(self.agent_ids)
        self._ring: Ring | None = None

    @property
    def ring(self) -> Ring:
        if self._ring is None:
            self._ring = Ring(self.agent_ids)
        return self._ring


class Assignment:
    """Who may lead what while one set of agents is alive. Rings are built when they are first asked, and kept."""

    __slots__ = ("_candidates", "_everybody", "_pools", "candidates")

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._candidates = {candidate.agent_id: candidate for candidate in candidates}
        self.candidates = frozenset(self._candidates.values())
        self._pools: dict[tuple[str, str], Pool | None] = {}
        self._everybody: Ring | None = None

    def pool(self, agent_group: str, zone: str) -> Pool | None:
        """The agents of the group in the zone, or of the whole group if none is there or `zone` is ""; None if it has
        none at all."""
        return self._pool(agent_group, zone) or self._pool(agent_group, "")

    def owner(self, decided: str, *, agent_group: str, zone: str, pinned_to: str) -> str | None:
        """The agent that it is pinned to, if that is alive, whatever its group and zone. Else the one that was decided,
        if that may lead it. Else None: it is still to be decided."""
        if pinned_to in self._candidates:
            return pinned_to
        pool = self.pool(agent_group, zone)
        return decided if pool is not None and decided in pool.members else None

    def is_live(self, agent_id: str) -> bool:
        return agent_id in self._candidates

    def ringed_owner(self, topic: str, partition: int, *, agent_group: str, zone: str, pinned_to: str) -> str | None:
        """The ring's own choice, where no owner is decided, unless it is pinned to an agent that is alive."""
        if pinned_to in self._candidates:
            return pinned_to
        pool = self.pool(agent_group, zone)
        return pool.ring.owner(partition_key(topic, partition)) if pool else None

    def desired_shard_owner(self, shard: int) -> str | None:
        """Shards belong to no group of agents and no zone: every live agent may coordinate."""
        if self._everybody is None:
            self._everybody = Ring(self._candidates)
        return self._everybody.owner(shard_key(shard))

    def _pool(self, agent_group: str, zone: str) -> Pool | None:
        if (agent_group, zone) not in self._pools:
            members = [
                candidate.agent_id
                for candidate in self._candidates.values()
                if candidate.agent_group == agent_group and (not zone or candidate.zone == zone)
            ]
            self._pools[agent_group, zone] = Pool(members) if members else None
        return self._pools[agent_group, zone]
