"""What an operator may order of a cluster: an agent to give away what it leads, a partition to go to an agent."""

from __future__ import annotations

from streamhouse.cluster.state import (
    AgentState,
    ClusterState,
    name_of,
    read_cluster_state,
    waits_for,
)
from streamhouse.metadata.cluster import Placement
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidInput

_WHICH_ARE = "`streamhouse agent list` shows which are"


async def order_drain(store: MetadataStore, agent_id: str, liveness_ms: int) -> str:
    """The agent is to lead nothing any more. What whoever orders it should know; empty if there is somebody else to
    lead."""
    state = await read_cluster_state(store, liveness_ms)
    agent = state.agent(agent_id)
    states = state.states()
    if states[agent_id] is AgentState.SILENT:
        raise InvalidInput(f"agent {agent_id!r} is not alive and gives nothing away", hint=_WHICH_ARE)
    await store.drain_agent(agent_id)
    group = agent.info.agent_group
    others = [each.info.agent_id for each in state.agents if each is not agent and each.info.agent_group == group]
    if any(states[other] is AgentState.LIVE for other in others):
        return ""
    return (
        f"no other agent of agent group {group!r} is alive: what {agent_id} leads stays with it until it stops, and "
        "new partitions get no leader until an agent is started"
    )


async def order_move(
    store: MetadataStore, topic: str, number: int, agent_id: str | None, liveness_ms: int
) -> Placement:
    """The agent is to lead the partition while it is alive, None: whoever owns it; as it was before."""
    state = await read_cluster_state(store, liveness_ms)
    placement = state.partition(topic, number)
    if agent_id is not None:
        _check_target(agent_id, placement, state)
    await store.pin_partition(placement.partition, agent_id or "")
    return placement


def waiting_note(agent_id: str) -> str:
    return f"waits for agent {agent_id}, whose disk may hold acknowledged records"


def _check_target(agent_id: str, placement: Placement, state: ClusterState) -> None:
    agent_state = state.state_of(state.agent(agent_id))
    if agent_state is AgentState.SILENT:
        raise InvalidInput(f"agent {agent_id!r} is not alive", hint=_WHICH_ARE)
    if agent_state is AgentState.DRAINING:
        raise InvalidInput(f"agent {agent_id!r} is draining", hint="start it again to make it take part")
    missing = waits_for(placement)
    if missing is not None and missing != agent_id:
        raise InvalidInput(
            f"{name_of(placement)} cannot be moved: it {waiting_note(missing)}",
            hint=f"start agent {missing}, or see `streamhouse partition elect --help`",
        )
