"""Agents and placements as one look at the metadata store shows them, and what that means to an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import takewhile

from streamhouse.core.placement.attempts import LONGEST_WAIT_MS, STUCK_AFTER
from streamhouse.core.placement.liveness import live_agents
from streamhouse.core.placement.transfer import TransferState
from streamhouse.metadata.cluster import AgentRow, Placement, ShardPlacement, Transfer
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition

_LATELY_MS = 3 * LONGEST_WAIT_MS
_TRY_MS = 45_000
"""How long a try may take, and the round that begins the next, on a slow machine."""
_LOOK_BACK_MS = 5 * LONGEST_WAIT_MS
"""So that more than `STUCK_AFTER` tries are seen, however far apart they are by now."""


class AgentState(Enum):
    LIVE = "live"
    DRAINING = "draining"
    SILENT = "silent"


@dataclass(frozen=True, slots=True, kw_only=True)
class StuckHandOver:
    """A partition that its leader cannot hand over, how often in a row of late, and why the last try failed."""

    placement: Placement
    to_agent_id: str
    failures: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """`transfers`: hand-overs under way, and those that failed since the last that did not, newest first; if they were
    looked at."""

    agents: Sequence[AgentRow]
    placements: Sequence[Placement]
    shards: Sequence[ShardPlacement]
    liveness_ms: int
    transfers: Sequence[Transfer] = ()

    def agent(self, agent_id: str) -> AgentRow:
        for agent in self.agents:
            if agent.info.agent_id == agent_id:
                return agent
        raise NotFound(f"there is no agent {agent_id!r}", hint="`streamhouse agent list` shows those that there are")

    def state_of(self, agent: AgentRow) -> AgentState:
        """As the agents themselves judge it."""
        alone = [replace(agent, is_draining=False)]
        if not live_agents(alone, [*self.placements, *self.shards], liveness_ms=self.liveness_ms):
            return AgentState.SILENT
        return AgentState.DRAINING if agent.is_draining else AgentState.LIVE

    def states(self) -> dict[str, AgentState]:
        """Of every agent, by its id: one look at all leases, and not one for each agent."""
        undrained = [replace(agent, is_draining=False) for agent in self.agents]
        alive = live_agents(undrained, [*self.placements, *self.shards], liveness_ms=self.liveness_ms)
        heard_of = {agent.info.agent_id for agent in alive}
        return {
            agent.info.agent_id: AgentState.SILENT
            if agent.info.agent_id not in heard_of
            else AgentState.DRAINING
            if agent.is_draining
            else AgentState.LIVE
            for agent in self.agents
        }

    def serving(self) -> list[str]:
        """Agents that write and coordinate, or may be given something to: the live ones, and of those that drain the
        ones that have something left. What nobody else can take stays with them until they stop."""
        holders = {placement.agent_id for placement in self.placements if placement.lease_left_ms > 0}
        holders |= {shard.agent_id for shard in self.shards if shard.lease_left_ms > 0}
        return [
            agent_id
            for agent_id, state in self.states().items()
            if state is AgentState.LIVE or (state is AgentState.DRAINING and agent_id in holders)
        ]

    def drained_groups(self) -> dict[str, list[str]]:
        """The agent groups all of whose agents are draining, as far as they are alive, with those agents: no other is
        there to take what they lead."""
        states = self.states()
        alive: dict[str, list[str]] = {}
        for agent in self.agents:
            if states[agent.info.agent_id] is not AgentState.SILENT:
                alive.setdefault(agent.info.agent_group, []).append(agent.info.agent_id)
        return {
            group: agents
            for group, agents in alive.items()
            if all(states[agent_id] is AgentState.DRAINING for agent_id in agents)
        }

    def is_live(self, agent_id: str) -> bool:
        return any(agent.info.agent_id == agent_id and self.state_of(agent) is AgentState.LIVE for agent in self.agents)

    def led_by(self, agent_id: str) -> list[Placement]:
        return [placement for placement in self.placements if leader_of(placement) == agent_id]

    def shards_of(self, agent_id: str) -> list[ShardPlacement]:
        return [shard for shard in self.shards if shard.agent_id == agent_id and shard.lease_left_ms > 0]

    def stuck_hand_overs(self, now_ms: int) -> list[StuckHandOver]:
        """As the transfers tell of it, so that any node can say so; those that nobody has tried lately are no longer
        wanted."""
        return [each for each in self._failed_hand_overs(now_ms) if each.failures >= STUCK_AFTER]

    def failing_hand_overs(self, now_ms: int) -> list[StuckHandOver]:
        """Those whose last tries have failed, and not yet so often."""
        return [each for each in self._failed_hand_overs(now_ms) if each.failures < STUCK_AFTER]

    def _failed_hand_overs(self, now_ms: int) -> list[StuckHandOver]:
        """Of each partition that its leader could not hand over at the last try: how often in a row."""
        last_tries: dict[TopicPartition, list[Transfer]] = {}
        for transfer in self.transfers:
            if transfer.state.is_final:
                last_tries.setdefault(transfer.partition, []).append(transfer)
        failed = []
        for placement in self.placements:
            tries = last_tries.get(placement.partition, ())
            if not tries or tries[0].from_agent_id != leader_of(placement):
                continue
            last = tries[0]
            failures = sum(1 for _ in takewhile(partial(_failed_alike, last), tries))
            if failures and now_ms - last.created_at_ms < _next_try_within_ms(tries[:failures]):
                failed.append(
                    StuckHandOver(
                        placement=placement, to_agent_id=last.to_agent_id, failures=failures, reason=last.reason
                    )
                )
        return failed

    def of_topic(self, topic: str) -> list[Placement]:
        found = [placement for placement in self.placements if placement.topic == topic]
        if not found:
            raise NotFound(f"there is no topic {topic!r}", hint="`streamhouse topic list` shows those that there are")
        return found

    def partition(self, topic: str, number: int) -> Placement:
        placements = self.of_topic(topic)
        for placement in placements:
            if placement.partition.partition == number:
                return placement
        raise NotFound(f"topic {topic!r} has no partition {number}", hint=f"they are 0 to {len(placements) - 1}")


def _next_try_within_ms(tries: Sequence[Transfer]) -> int:
    """After the last one began: each waits twice as long as the one before, and what comes no more is not wanted any
    more. `tries` are those that failed in a row, newest first."""
    gap_ms = tries[0].created_at_ms - tries[1].created_at_ms if len(tries) > 1 else 0
    return min(_TRY_MS + 2 * gap_ms, _LATELY_MS)


def _failed_alike(last: Transfer, transfer: Transfer) -> bool:
    return transfer.state is not TransferState.COMPLETED and (
        (transfer.from_agent_id, transfer.to_agent_id) == (last.from_agent_id, last.to_agent_id)
    )


async def read_cluster_state(store: MetadataStore, liveness_ms: int) -> ClusterState:
    # Agents last: one that registers or beats meanwhile is not taken for dead because of an older lease.
    placements = await store.list_placements()
    shards = await store.list_shard_placements()
    return ClusterState(agents=await store.list_agents(), placements=placements, shards=shards, liveness_ms=liveness_ms)


async def read_cluster_health(store: MetadataStore, liveness_ms: int) -> ClusterState:
    """With the hand-overs that do not get done."""
    transfers = await store.list_unresolved_transfers(_LOOK_BACK_MS)
    return replace(await read_cluster_state(store, liveness_ms), transfers=transfers)


def name_of(placement: Placement) -> str:
    return f"{placement.topic}/{placement.partition.partition}"


def leader_of(placement: Placement) -> str | None:
    """The holder of a live lease; one that ran out or was released is nobody's."""
    return placement.agent_id if placement.lease_left_ms > 0 else None


def waits_for(placement: Placement) -> str | None:
    """The agent without which nobody may lead it, if that one does not."""
    return placement.wal_agent_id or None if leader_of(placement) is None else None
