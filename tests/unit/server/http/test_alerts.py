"""What somebody is told to look at: each trouble by itself, the worst first, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from streamhouse.cluster.state import ClusterState
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.log.budget import ByteBudget
from streamhouse.metadata.cluster import AgentInfo, AgentRow, Placement, ShardPlacement
from streamhouse.model.names import TopicPartition
from streamhouse.server.http.rest.alerts import NodeCondition, alerts_of
from streamhouse.wire.http.rest.console import Alert

LIVENESS_MS = 10_000
WELL = NodeCondition(buffer=ByteBudget(1000), wal_problem=None)


def agent(agent_id: str, *, silent_ms: int = 0) -> AgentRow:
    info = AgentInfo(agent_id=agent_id, address="", kafka_address="", zone="", agent_group="default")
    return AgentRow(info=info, node_id=1, started_at_ms=0, silent_ms=silent_ms, is_draining=False)


def placement(number: int, *, lease_left_ms: int = 5_000, wal_agent_id: str = "") -> Placement:
    return Placement(
        topic="orders",
        partition=TopicPartition(UUID(int=1), number),
        agent_id="a",
        epoch=1,
        lease_left_ms=lease_left_ms,
        wal_agent_id=wal_agent_id,
        pinned_to="",
        log_start_offset=0,
        committed_end=0,
        durable_end=0,
    )


CLUSTER = ClusterState(
    agents=[agent("a"), agent("b")],
    placements=[placement(number) for number in range(6)],
    shards=[ShardPlacement(shard=shard, agent_id="a", epoch=1, lease_left_ms=5_000) for shard in range(SHARD_COUNT)],
    liveness_ms=LIVENESS_MS,
)


def codes(alerts: Sequence[Alert]) -> list[tuple[str, str]]:
    return [(alert.severity, alert.code) for alert in alerts]


def test_where_all_is_well_there_is_no_alert() -> None:
    assert alerts_of(CLUSTER, WELL) == []


def test_a_silent_agent_is_named() -> None:
    (alert,) = alerts_of(replace(CLUSTER, agents=[agent("a"), agent("b", silent_ms=LIVENESS_MS)]), WELL)
    assert (alert.severity, alert.code) == ("warning", "agents_silent")
    assert "1 of 2 agents" in alert.text
    assert alert.text.endswith(": b.")


def test_a_cluster_without_a_live_agent_is_down() -> None:
    silent = [agent("a", silent_ms=LIVENESS_MS), agent("b", silent_ms=LIVENESS_MS)]
    assert codes(alerts_of(replace(CLUSTER, agents=silent), WELL)) == [("critical", "no_live_agent")]
    assert codes(alerts_of(replace(CLUSTER, agents=[]), WELL)) == [("critical", "no_live_agent")]


def test_partitions_that_wait_for_one_agent_are_told_from_those_that_anybody_may_lead() -> None:
    released_ms = -(10**13)
    lost = [placement(number, lease_left_ms=released_ms, wal_agent_id="c") for number in range(5)]
    lost.append(placement(5, lease_left_ms=released_ms))

    waiting, free = alerts_of(replace(CLUSTER, placements=lost), WELL)

    assert (waiting.severity, waiting.code) == ("critical", "partitions_waiting_for_agent")
    assert waiting.text.startswith("5 partitions can be led only by c,")
    assert waiting.text.endswith("orders/0, orders/1, orders/2 and 2 more.")
    assert "--unclean" in waiting.what_to_do
    assert (free.severity, free.code) == ("critical", "partitions_without_leader")
    assert free.text.startswith("1 partition cannot")
    assert "orders/5" in free.text


def test_shards_without_coordinator_are_counted() -> None:
    (alert,) = alerts_of(replace(CLUSTER, shards=CLUSTER.shards[2:]), WELL)
    assert (alert.severity, alert.code) == ("critical", "groups_without_coordinator")
    assert alert.text.startswith(f"2 of {SHARD_COUNT} ")


def test_the_worst_comes_first() -> None:
    buffer = ByteBudget(1000)
    buffer.take(800)
    troubled = NodeCondition(buffer=buffer, wal_problem="the WAL cannot be written: No space left on device")

    alerts = alerts_of(replace(CLUSTER, agents=[agent("a"), agent("b", silent_ms=LIVENESS_MS)]), troubled)

    assert codes(alerts) == [
        ("critical", "wal_not_writable"),
        ("warning", "agents_silent"),
        ("warning", "buffer_nearly_full"),
    ]
    assert "No space left" in alerts[0].text
    assert "800 of 1000" in alerts[2].text
