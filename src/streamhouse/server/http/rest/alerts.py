"""What somebody should look at now, what to do about it, and where: from what the metadata store says of the cluster
and what the nodes say of themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import AgentState, ClusterState, StuckHandOver, name_of, waits_for
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.cluster import Placement
from streamhouse.runtime.measures import SECONDS
from streamhouse.runtime.watched import Silence
from streamhouse.server.http.rest.watch import Seen
from streamhouse.wire.http.rest.console import MAX_LINKS, Alert, AlertPartition

_NAMED = 3
SLOW_PRODUCE_MS = 2_500
"""As in deploy/prometheus/alerts.yml. Waits are counted between bounds, and this is one: what is above was longer."""
_FULL_SHARE = 0.75
_LOOK_AT_WAITS = "Look at the WAL's syncs, the object store's requests and the event loop: /metrics has them."
_STUCK_UPLOAD_MS = 20_000
"""A segment takes a second; the largest over a thin link may take this long."""


def alerts_of(
    seen: Seen, nodes: Mapping[str, NodeWork], now_ms: int, *, usual_waits_ms: Mapping[str, float]
) -> list[Alert]:
    """The worst first. `nodes` is what the one that is asked does, first, and each that answered it; `usual_waits_ms`
    how long the slowest hundredth of produces took in the last hour, where it takes far longer now. Of the cluster
    nothing is told while the metadata store is silent, but that it is: what it said last is no news."""
    found = [*_of_silence(seen, next(iter(nodes), ""), now_ms), *_of_nodes(nodes), *_of_waits(nodes, usual_waits_ms)]
    if seen.metadata_silence is None:
        found += _of_cluster(seen.state, now_ms)
    return sorted(found, key=lambda alert: alert.severity != "critical")


def _of_silence(seen: Seen, own: str, now_ms: int) -> Iterator[Alert]:
    states = seen.state.states()
    if (silence := seen.metadata_silence) is not None:
        yield Alert(
            severity="critical",
            code="metadata_store_away",
            text=f"The metadata store does not answer this node for {_since(silence, now_ms)}: {silence.why}. What is "
            "said of agents, leases, topics and groups is as it was before.",
            what_to_do="Look whether PostgreSQL runs and this node reaches it. While it is away leases run out, and "
            "then nothing can be written.",
            agents=[own] if own in states else [],
        )
    else:
        yield from _of_silent_agents(seen, states)
    mute = {
        agent_id: silence
        for agent_id, silence in seen.work.silent.items()
        if seen.metadata_silence is not None or states.get(agent_id) is not AgentState.SILENT
    }
    if mute:
        agent_id, silence = next(iter(mute.items()))
        yield Alert(
            severity="warning",
            code="agents_not_answering",
            text=f"{len(mute)} of {len(states)} agents {_do(mute)} not answer this node: {_some(mute)}. {agent_id} has "
            f"not for {_since(silence, now_ms)}: {silence.why}.",
            what_to_do="Look whether the process runs, is not paused, and can be reached from here. Others lead what "
            "it led when its leases have run out, except where its own disk may hold acknowledged records.",
            agents=list(mute)[:MAX_LINKS],
        )


def _of_silent_agents(seen: Seen, states: Mapping[str, AgentState]) -> Iterator[Alert]:
    silent = [agent_id for agent_id, state in states.items() if state is AgentState.SILENT]
    if not seen.state.serving():
        draining = [agent_id for agent_id, state in states.items() if state is AgentState.DRAINING]
        but = f" but {_some(draining)}, draining and with nothing left" if draining else ""
        yield Alert(
            severity="critical",
            code="no_live_agent",
            text=f"No agent is alive{but}: nothing can be written, and groups have no coordinators.",
            what_to_do="Start an agent with `streamhouse agent`, and look into the logs of those that ended.",
            agents=[*draining, *silent][:MAX_LINKS],
        )
        return
    yield from _of_draining_agents(seen.state)
    cut_off = [agent_id for agent_id in silent if agent_id in seen.work.answers]
    gone = [agent_id for agent_id in silent if agent_id not in seen.work.answers]
    if gone:
        yield Alert(
            severity="warning",
            code="agents_silent",
            text=f"{len(gone)} of {len(states)} agents sent no heartbeat for too long: {_some(gone)}.",
            what_to_do="Look whether the process runs and reaches the metadata store. Others lead what it led, except "
            "where its own disk may hold acknowledged records. One that is gone for good is taken off the list with "
            "`streamhouse agent forget --metadata …`, by who has the database.",
            agents=gone[:MAX_LINKS],
            commands=[f"streamhouse agent forget {agent_id} --metadata postgresql://…" for agent_id in gone[:_NAMED]],
        )
    if cut_off:
        yield Alert(
            severity="warning",
            code="agents_without_metadata_store",
            text=f"{len(cut_off)} of {len(states)} agents answer, but their heartbeats do not reach the metadata "
            f"store: {_some(cut_off)}.",
            what_to_do="Look into the way from there to PostgreSQL. Such an agent leads nothing any more.",
            agents=cut_off[:MAX_LINKS],
        )


def _of_draining_agents(cluster: ClusterState) -> Iterator[Alert]:
    drained = cluster.drained_groups()
    if drained:
        agents = [agent_id for of_group in drained.values() for agent_id in of_group]
        groups = (
            ""
            if len({agent.info.agent_group for agent in cluster.agents}) == 1
            else f" of agent group {_some(drained)}"
        )
        yield Alert(
            severity="warning",
            code="agents_all_draining",
            text=f"All agents{groups} that are alive are draining: {_some(agents)}. What they lead stays with them "
            "until they stop, and new partitions get no leader.",
            what_to_do="Start another agent of that group with `streamhouse agent`, or one of these again: then it "
            "takes part.",
            agents=agents[:MAX_LINKS],
        )


def _of_cluster(cluster: ClusterState, now_ms: int) -> Iterator[Alert]:
    yield from _of_store_access(cluster)
    yield from _of_partitions(cluster)
    yield from _of_shards(cluster)
    yield from _of_hand_overs(cluster, now_ms)


def _of_store_access(cluster: ClusterState) -> Iterator[Alert]:
    states = cluster.states()
    stalled = [agent.info.agent_id for agent in cluster.agents if agent.store_access is StoreAccess.STALLED]
    if stalled := [agent_id for agent_id in stalled if states[agent_id] is not AgentState.SILENT]:
        yield Alert(
            severity="critical",
            code="agents_without_object_store",
            text=f"{len(stalled)} of {len(states)} agents {_do(stalled)} not reach the object store: {_some(stalled)}.",
            what_to_do="Look into the way from there to the object store. Agents that reach it lead partitions with "
            "durability=object instead; those with durability=wal go on until the buffers are full.",
            agents=stalled[:MAX_LINKS],
        )


def _of_partitions(cluster: ClusterState) -> Iterator[Alert]:
    leaderless = [placement for placement in cluster.placements if placement.lease_left_ms <= 0]
    waiting = [placement for placement in leaderless if waits_for(placement)]
    free = [placement for placement in leaderless if not waits_for(placement)]
    if waiting:
        agents = list(dict.fromkeys(placement.wal_agent_id for placement in waiting))
        yield Alert(
            severity="critical",
            code="partitions_waiting_for_agent",
            text=f"{_partitions(len(waiting))} can be led only by {_some(agents)}, whose disk may hold acknowledged "
            f"records: {_some(map(name_of, waiting))}.",
            what_to_do="Start that agent again on the same data directory. If its disk is lost, give those records up "
            "with `streamhouse partition elect TOPIC P --unclean --metadata …`, as who has the database may.",
            agents=agents[:MAX_LINKS],
            partitions=_linked(waiting),
            commands=[
                f"streamhouse partition elect {each.topic} {each.partition.partition} --unclean --metadata postgresql://…"
                for each in waiting[:_NAMED]
            ],
        )
    if free:
        yield Alert(
            severity="critical",
            code="partitions_without_leader",
            text=f"{_partitions(len(free))} cannot be written now, as nobody leads: {_some(map(name_of, free))}.",
            what_to_do="If this stays for longer than a lease lasts, look whether agents of the topic's agent group "
            "are alive and reach the metadata store.",
            partitions=_linked(free),
        )


def _of_shards(cluster: ClusterState) -> Iterator[Alert]:
    missing = SHARD_COUNT - sum(shard.lease_left_ms > 0 for shard in cluster.shards)
    if missing:
        last = dict.fromkeys(shard.agent_id for shard in cluster.shards if shard.lease_left_ms <= 0)
        known = {agent.info.agent_id for agent in cluster.agents}
        yield Alert(
            severity="critical",
            code="groups_without_coordinator",
            text=f"{missing} of {SHARD_COUNT} shards of consumer groups have no coordinator: their groups stand still.",
            what_to_do="If this stays for longer than a lease lasts, look whether agents are alive and reach the "
            "metadata store.",
            agents=[agent_id for agent_id in last if agent_id in known][:MAX_LINKS],
        )


def _of_hand_overs(cluster: ClusterState, now_ms: int) -> Iterator[Alert]:
    stuck = cluster.stuck_hand_overs(now_ms)
    if stuck:
        yield Alert(
            severity="warning",
            code="hand_overs_stuck",
            text=f"{_partitions(len(stuck))} cannot be handed over to where they should be led: "
            f"{_some(name_of(each.placement) for each in stuck)}. {_worst(stuck)}.",
            what_to_do="They are led where they are, and it is tried again less and less often. Look whether the "
            "agents have enough processor time and the object store is quick; each try is in the list of "
            "transfers.",
            agents=_agents_of(stuck),
            partitions=_linked(each.placement for each in stuck),
        )
    failing = cluster.failing_hand_overs(now_ms)
    if failing:
        yield Alert(
            severity="warning",
            code="hand_overs_failing",
            text=f"{_partitions(len(failing))} could not be handed over just now: "
            f"{_some(name_of(each.placement) for each in failing)}. {_worst(failing)}.",
            what_to_do="Nothing yet: they are led where they are, and it is tried again at once.",
            agents=_agents_of(failing),
            partitions=_linked(each.placement for each in failing),
        )


def _of_nodes(nodes: Mapping[str, NodeWork]) -> Iterator[Alert]:
    for agent_id, node in nodes.items():
        if node.wal_problem is not None:
            yield Alert(
                severity="critical",
                code="wal_not_writable",
                text=f"{agent_id} refuses records: {node.wal_problem}.",
                what_to_do="Make room on the disk, or replace it. The node tries again by itself.",
                agents=[agent_id],
            )
    full = {name: node for name, node in nodes.items() if node.buffered_bytes > node.buffer_limit_bytes * _FULL_SHARE}
    if full:
        agent_id, node = next(iter(full.items()))
        yield Alert(
            severity="warning",
            code="buffer_nearly_full",
            text=f"The buffers for records that are in no segment yet are nearly full at {_some(full)}: "
            f"{node.buffered_bytes} of {node.buffer_limit_bytes} bytes at {agent_id}; when they are full, producers "
            "wait.",
            what_to_do="Look whether the object store is slow or away, else give the node more with --buffer-bytes.",
            agents=list(full)[:MAX_LINKS],
        )
    stuck = {name: each.oldest_upload_ms for name, each in nodes.items() if each.oldest_upload_ms > _STUCK_UPLOAD_MS}
    if stuck:
        longest = max(stuck, key=lambda name: stuck[name])
        yield Alert(
            severity="warning",
            code="uploads_stuck",
            text=f"Segments do not get into the object store from {_some(stuck)}: {longest} has tried for "
            f"{stuck[longest] / 1000:.0f} s.",
            what_to_do="Look into the way from there to the object store and to PostgreSQL: the agent's log says what "
            "they answer. Until then the records are in the write-ahead log, and in memory.",
            agents=list(stuck)[:MAX_LINKS],
        )


def _of_waits(nodes: Mapping[str, NodeWork], usual_ms: Mapping[str, float]) -> Iterator[Alert]:
    p99_ms = {name: node.produce_p99_ms or 0.0 for name, node in nodes.items()}
    slow = [name for name, waited_ms in p99_ms.items() if waited_ms > SLOW_PRODUCE_MS]
    if slow:
        worst = max(slow, key=lambda name: p99_ms[name])
        yield Alert(
            severity="warning",
            code="produce_slow",
            text=f"Producers have waited long in the last minute at {_some(slow)}: one in a hundred for "
            f"more than {_bound_below(p99_ms[worst]) / 1000:g} s at {worst}.",
            what_to_do=_LOOK_AT_WAITS,
            agents=slow[:MAX_LINKS],
        )
    slower = [name for name in usual_ms if name in nodes and name not in slow]
    if slower:
        worst = max(slower, key=lambda name: p99_ms[name])
        yield Alert(
            severity="warning",
            code="produce_slower",
            text=f"Producers wait far longer than in the last hour at {_some(slower)}: one in a hundred for "
            f"more than {_bound_below(p99_ms[worst]):g} ms at {worst} in the last minute; the median of that node's "
            f"hour is {usual_ms[worst]:.1f} ms.",
            what_to_do=_LOOK_AT_WAITS,
            agents=slower[:MAX_LINKS],
        )


def _bound_below(waited_ms: float) -> float:
    """Waits are counted between bounds: only that it was longer than the one below is sure."""
    return max((1000 * bound for bound in SECONDS if 1000 * bound < waited_ms), default=0.0)


def _worst(hand_overs: Sequence[StuckHandOver]) -> str:
    worst = max(hand_overs, key=lambda each: each.failures)
    times = "once" if worst.failures == 1 else f"{worst.failures} times in a row"
    return f"{name_of(worst.placement)} to {worst.to_agent_id} failed {times} of late: {worst.reason}"


def _agents_of(hand_overs: Sequence[StuckHandOver]) -> list[str]:
    both = (agent_id for each in hand_overs for agent_id in (each.placement.agent_id, each.to_agent_id))
    return list(dict.fromkeys(both))[:MAX_LINKS]


def _linked(placements: Iterable[Placement]) -> list[AlertPartition]:
    found = [AlertPartition(topic=each.topic, partition=each.partition.partition) for each in placements]
    return found[:MAX_LINKS]


def _partitions(count: int) -> str:
    return "1 partition" if count == 1 else f"{count} partitions"


def _do(agents: Sequence[str] | Mapping[str, Silence]) -> str:
    return "does" if len(agents) == 1 else "do"


def _since(silence: Silence, now_ms: int) -> str:
    return f"{max(0, now_ms - silence.since_ms) / 1000:.0f} s"


def _some(names: Iterable[str]) -> str:
    all_of_them: Sequence[str] = list(names)
    more = len(all_of_them) - _NAMED
    return ", ".join(all_of_them[:_NAMED]) + (f" and {more} more" if more > 0 else "")
