"""What somebody should look at now, from one look at the cluster and at this node, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from streamhouse.cluster.state import AgentState, ClusterState, name_of, waits_for
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.log.budget import ByteBudget
from streamhouse.wire.http.rest.console import Alert

_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCondition:
    """`wal_problem` says why the WAL on this node's disk cannot be written, if so."""

    buffer: ByteBudget
    wal_problem: str | None


def alerts_of(cluster: ClusterState, node: NodeCondition, now_ms: int) -> list[Alert]:
    """The worst first."""
    found = [
        *_of_agents(cluster),
        *_of_partitions(cluster),
        *_of_shards(cluster),
        *_of_hand_overs(cluster, now_ms),
        *_of_node(node),
    ]
    return sorted(found, key=lambda alert: alert.severity != "critical")


def _of_agents(cluster: ClusterState) -> Iterator[Alert]:
    states = cluster.states()
    silent = [agent_id for agent_id, state in states.items() if state is AgentState.SILENT]
    if AgentState.LIVE not in states.values():
        yield Alert(
            severity="critical",
            code="no_live_agent",
            text="No agent is alive: nothing can be written, and groups have no coordinators.",
            what_to_do="Start an agent with `streamhouse agent run`, and look into the logs of those that ended.",
        )
    elif silent:
        yield Alert(
            severity="warning",
            code="agents_silent",
            text=f"{len(silent)} of {len(states)} agents sent no heartbeat for too long: {_some(silent)}.",
            what_to_do="Look whether the process runs and reaches the metadata store. Others lead what it led, except "
            "where its own disk may hold acknowledged records.",
        )

    stalled = [agent.info.agent_id for agent in cluster.agents if agent.store_access is StoreAccess.STALLED]
    if stalled := [agent_id for agent_id in stalled if states[agent_id] is not AgentState.SILENT]:
        yield Alert(
            severity="critical",
            code="agents_without_object_store",
            text=f"{len(stalled)} of {len(states)} agents do not reach the object store: {_some(stalled)}.",
            what_to_do="Look into the way from there to the object store. Agents that reach it lead partitions with "
            "durability=object instead; those with durability=wal go on until the buffers are full.",
        )


def _of_partitions(cluster: ClusterState) -> Iterator[Alert]:
    leaderless = [placement for placement in cluster.placements if placement.lease_left_ms <= 0]
    waiting = [placement for placement in leaderless if waits_for(placement)]
    free = [placement for placement in leaderless if not waits_for(placement)]
    if waiting:
        agents = dict.fromkeys(placement.wal_agent_id for placement in waiting)
        yield Alert(
            severity="critical",
            code="partitions_waiting_for_agent",
            text=f"{_partitions(len(waiting))} can be led only by {_some(agents)}, whose disk may hold acknowledged "
            f"records: {_some(map(name_of, waiting))}.",
            what_to_do="Start that agent again on the same data directory. If its disk is lost, give those records up "
            "with `streamhouse partition elect TOPIC P --unclean`.",
        )
    if free:
        yield Alert(
            severity="critical",
            code="partitions_without_leader",
            text=f"{_partitions(len(free))} cannot be written now, as nobody leads: {_some(map(name_of, free))}.",
            what_to_do="If this stays for longer than a lease lasts, look whether agents of the topic's agent group "
            "are alive and reach the metadata store.",
        )


def _of_shards(cluster: ClusterState) -> Iterator[Alert]:
    missing = SHARD_COUNT - sum(shard.lease_left_ms > 0 for shard in cluster.shards)
    if missing:
        yield Alert(
            severity="critical",
            code="groups_without_coordinator",
            text=f"{missing} of {SHARD_COUNT} shards of consumer groups have no coordinator: their groups stand still.",
            what_to_do="If this stays for longer than a lease lasts, look whether agents are alive and reach the "
            "metadata store.",
        )


def _of_hand_overs(cluster: ClusterState, now_ms: int) -> Iterator[Alert]:
    stuck = cluster.stuck_hand_overs(now_ms)
    if stuck:
        worst = max(stuck, key=lambda each: each.failures)
        yield Alert(
            severity="warning",
            code="hand_overs_stuck",
            text=f"{_partitions(len(stuck))} cannot be handed over to where they should be led: "
            f"{_some(name_of(each.placement) for each in stuck)}. {name_of(worst.placement)} to {worst.to_agent_id} "
            f"failed {worst.failures} times in a row of late: {worst.reason}.",
            what_to_do="They are led where they are, and it is tried again less and less often. Look whether the "
            "agents have enough processor time and the object store is quick; each try is in the list of "
            "transfers.",
        )


def _of_node(node: NodeCondition) -> Iterator[Alert]:
    if node.wal_problem is not None:
        yield Alert(
            severity="critical",
            code="wal_not_writable",
            text=f"This node refuses records: {node.wal_problem}.",
            what_to_do="Make room on the disk, or replace it. The node tries again by itself.",
        )
    if node.buffer.has_little_room():
        yield Alert(
            severity="warning",
            code="buffer_nearly_full",
            text=f"{node.buffer.used_bytes} of {node.buffer.limit_bytes} bytes for records that are in no segment yet "
            "are used; when they are full, producers wait.",
            what_to_do="Look whether the object store is slow or away, else give the node more with --buffer-bytes.",
        )


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _some(names: Iterable[str]) -> str:
    all_of_them: Sequence[str] = list(names)
    more = len(all_of_them) - _NAMED
    return ", ".join(all_of_them[:_NAMED]) + (f" and {more} more" if more > 0 else "")
