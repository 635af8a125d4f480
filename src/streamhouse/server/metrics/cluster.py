"""Agents, topics, leases and rebalances, as this node sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from streamhouse.broker.broker import Broker
from streamhouse.cluster.state import AgentState, ClusterState
from streamhouse.server.metrics.exposition import Family, by_label, gauge, histogram
from streamhouse.server.metrics.node import NodeMeasures


def cluster_families(node: NodeMeasures, broker: Broker) -> Iterator[Family]:
    view, topics = node.view, list(broker.topics)
    placements = list(view.placements.values())
    state = ClusterState(
        agents=list(view.agents.values()),
        placements=placements,
        shards=view.shards,
        liveness_ms=broker.settings.liveness,
    )
    counted = Counter(state.states().values())
    yield by_label(
        "gauge",
        "streamhouse_agents",
        "Registered agents, at this node's last look.",
        "state",
        {each.value: counted[each] for each in AgentState},
    )
    yield gauge("streamhouse_topics", "Topics that this node knows of.", len(topics))
    yield gauge("streamhouse_partitions", "Partitions of all topics.", sum(topic.partition_count for topic in topics))
    yield gauge("streamhouse_partitions_led", "Partitions that this node leads.", len(broker.led))
    yield gauge(
        "streamhouse_partitions_leaderless",
        "Partitions that nobody led at this node's last look.",
        sum(placement.lease_left_ms <= 0 for placement in placements),
    )
    yield by_label(
        "counter",
        "streamhouse_lease_events_total",
        "What happened to the leases of partitions.",
        "event",
        {**node.engine.leadership.events},
    )


def rebalance_families(node: NodeMeasures) -> Iterator[Family]:
    assigner = node.assigner()
    yield by_label(
        "counter",
        "streamhouse_rebalance_rounds_total",
        "Looks at who should lead what, by how they ended.",
        "result",
        {**assigner.rounds},
    )
    yield histogram("streamhouse_rebalance_seconds", "How long those took that were done.", assigner.round_seconds)
    yield gauge(
        "streamhouse_partitions_to_hand_over",
        "Partitions that this agent leads and another one should.",
        assigner.hand_overs.to_hand_over,
    )
    yield by_label(
        "counter",
        "streamhouse_hand_overs_total",
        "Hand-overs of partitions that this agent leads to others, by how they ended.",
        "result",
        {**assigner.hand_overs.results},
    )
    yield gauge(
        "streamhouse_partitions_hand_over_stuck",
        "Partitions that this agent leads and again and again cannot hand over.",
        len(assigner.hand_overs.stuck),
    )
    yield gauge(
        "streamhouse_coordinator_shards_to_hand_over",
        "Shards of group coordinators that this agent holds and another one should.",
        assigner.shard_placing.to_hand_over,
    )
