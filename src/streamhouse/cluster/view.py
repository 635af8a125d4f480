"""What this node knows of the cluster: as it was at the last look, for everybody who routes by it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from streamhouse.core.placement.assignment import Candidate
from streamhouse.core.placement.bounded_loads import remembered
from streamhouse.core.placement.liveness import is_heard_of, is_somewhere, live_agents
from streamhouse.metadata.cluster import AgentRow, ClusterStore, OwnerDecision, Placement, ShardPlacement
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock


class PartitionLocation(NamedTuple):
    """The agent that leads a partition, and its epoch."""

    agent: AgentRow
    epoch: int


class ClusterView:
    def __init__(
        self, store: ClusterStore, clock: Clock, *, agent_id: str, liveness_ms: int, lease_ttl_ms: int
    ) -> None:
        self._agent_id = agent_id
        self._lease_ttl_ms = lease_ttl_ms
        self._store = store
        self._clock = clock
        self._liveness_ms = liveness_ms
        # While looks succeed, a lease that runs out is looked at then: only long after that its holder is not known.
        self._grace_ms = lease_ttl_ms // 2
        self._looked_at_ms = 0
        self.agents: dict[str, AgentRow] = {}
        """Every registered agent, dead or alive."""
        self.live: list[AgentRow] = []
        """Those that may lead."""
        self.placements: dict[TopicPartition, Placement] = {}
        self.shards: Sequence[ShardPlacement] = ()
        self.owner_decision = OwnerDecision(version=0, agents=frozenset())
        """Not newer than the owners that the placements tell."""
        self._looked = asyncio.Event()

    async def refresh(self) -> None:
        looked_at_ms = self._clock.monotonic_ms()
        owner_decision = await self._store.load_owner_decision()
        agents = await self._store.list_agents()
        placements = await self._store.list_placements()
        shards = await self._store.list_shard_placements()
        self.agents = {agent.info.agent_id: agent for agent in agents}
        self.placements = {placement.partition: placement for placement in placements}
        self.shards = shards
        self.owner_decision = owner_decision
        self._looked_at_ms = looked_at_ms
        self.live = live_agents(agents, [*placements, *shards], liveness_ms=self._liveness_ms)
        self._looked.set()
        self._looked = asyncio.Event()

    async def next_look(self, timeout_ms: int) -> None:
        """Return when somebody has looked again, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_ms / 1000):
                await self._looked.wait()

    def note_owners(self, version: int, agents: frozenset[Candidate], owners: Mapping[TopicPartition, str]) -> None:
        """As this node has decided just now."""
        agent_ids = {candidate.agent_id for candidate in agents}
        for partition, owner in owners.items():
            placement = self.placements.get(partition)
            if placement is None:  # deleted meanwhile, and another look has seen it
                continue
            former = remembered(placement.owner, placement.former_owner, owner, agent_ids)
            self.placements[partition] = replace(placement, owner=owner, former_owner=former)
        self.owner_decision = OwnerDecision(version=version, agents=agents)

    @property
    def heard_of(self) -> list[AgentRow]:
        """Agents whose heartbeats came, at the last look."""
        return [agent for agent in self.agents.values() if is_heard_of(agent, liveness_ms=self._liveness_ms)]

    @property
    def reachable(self) -> list[AgentRow]:
        """Agents that clients may be sent to: also those that are draining, as long as they are heard of, and this
        node, which was asked just now, unless it cannot look any more: then clients had better ask others.

        There is always somebody if anybody is registered. When the database comes back after it was away for long,
        nobody has been heard of, and clients that were told so would have nobody left to ask, ever again."""
        own = self.agents.get(self._agent_id)
        named = [agent for agent in self.heard_of if agent is not own]
        if own is not None and self._age_ms < self._lease_ttl_ms + self._grace_ms:
            named.append(own)
        return [agent for agent in named or self.agents.values() if is_somewhere(agent)]

    def leader_of(self, partition: TopicPartition) -> PartitionLocation | None:
        """Whose lease was live; None if nobody's, or if that agent is gone."""
        placement = self.placements.get(partition)
        if placement is None or not self._is_held(placement):
            return None
        agent = self.agents.get(placement.agent_id)
        return None if agent is None else PartitionLocation(agent, placement.epoch)

    def coordinator_of(self, shard: int) -> AgentRow | None:
        for placement in self.shards:
            if placement.shard == shard and self._is_held(placement):
                return self.agents.get(placement.agent_id)
        return None

    def _is_held(self, placement: Placement | ShardPlacement) -> bool:
        """As far as can be told from the last look; a node that cannot look any more does not go on sending clients to
        where the leader was."""
        return placement.lease_left_ms > 0 and self._age_ms < placement.lease_left_ms + self._grace_ms

    @property
    def _age_ms(self) -> int:
        return self._clock.monotonic_ms() - self._looked_at_ms
