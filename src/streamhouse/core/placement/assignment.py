"""Which of the live agents should lead a partition or a shard of group coordinators."""

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


class Assignment:
    """The desired owners while one set of agents is alive. Rings are built when first asked for, and kept."""

    __slots__ = ("_candidates", "_everybody", "_rings")

    def __init__(self, candidates: Iterable[Candidate]) -> None:
        self._candidates = {candidate.agent_id: candidate for candidate in candidates}
        self._rings: dict[tuple[str, str], Ring | None] = {}
        self._everybody: Ring | None = None

    def desired_owner(self, topic: str, partition: int, *, agent_group: str, zone: str, pinned_to: str) -> str | None:
        """The agent that it is pinned to, if that is alive, whatever its group and zone. Else the ring's choice among
        the agents of the group in the zone, or of the whole group if none is there or `zone` is "". Else None."""
        if pinned_to in self._candidates:
            return pinned_to
        ring = self._ring(agent_group, zone) or self._ring(agent_group, "")
        return ring.owner(partition_key(topic, partition)) if ring else None

    def desired_shard_owner(self, shard: int) -> str | None:
        """Shards belong to no group of agents and no zone: every live agent may coordinate."""
        if self._everybody is None:
            self._everybody = Ring(self._candidates)
        return self._everybody.owner(shard_key(shard))

    def _ring(self, agent_group: str, zone: str) -> Ring | None:
        """None if no agent of the group is in the zone."""
        if (agent_group, zone) not in self._rings:
            members = [
                candidate.agent_id
                for candidate in self._candidates.values()
                if candidate.agent_group == agent_group and (not zone or candidate.zone == zone)
            ]
            self._rings[agent_group, zone] = Ring(members) if members else None
        return self._rings[agent_group, zone]
