"""What somebody is told to look at: each trouble by itself, the worst first, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from streamhouse.cluster.state import ClusterState
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.core.placement.transfer import TransferState
from streamhouse.log.budget import ByteBudget
from streamhouse.metadata.cluster import AgentInfo, AgentRow, Placement, ShardPlacement, Transfer
from streamhouse.model.names import TopicPartition
from streamhouse.server.http.rest import alerts as rest_alerts
from streamhouse.server.http.rest.alerts import NodeCondition
from streamhouse.server.http.rest.cluster import wholeness_of
from streamhouse.wire.http.rest.console import Alert

LIVENESS_MS = 10_000
NOW_MS = 1_750_000_000_000
WELL = NodeCondition(buffer=ByteBudget(1000), wal_problem=None)


def agent(agent_id: str, *, silent_ms: int = 0) -> AgentRow:
    info = AgentInfo(agent_id=agent_id, address="", kafka_address="a:9092", zone="", agent_group="default")
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


def alerts_of(cluster: ClusterState, node: NodeCondition) -> list[Alert]:
    return rest_alerts.alerts_of(cluster, node, NOW_MS)


def codes(alerts: Sequence[Alert]) -> list[tuple[str, str]]:
    return [(alert.severity, alert.code) for alert in alerts]


def test_where_all_is_well_there_is_no_alert() -> None:
    assert alerts_of(CLUSTER, WELL) == []


def test_a_silent_agent_is_named() -> None:
    (alert,) = alerts_of(replace(CLUSTER, agents=[agent("a"), agent("b", silent_ms=LIVENESS_MS)]), WELL)
    assert (alert.severity, alert.code) == ("warning", "agents_silent")
    assert "1 of 2 agents" in alert.text
    assert alert.text.endswith(": b.")


def test_an_agent_that_does_not_reach_the_store_is_named() -> None:
    stalled = replace(agent("b"), store_access=StoreAccess.STALLED)
    (alert,) = alerts_of(replace(CLUSTER, agents=[agent("a"), stalled]), WELL)
    assert (alert.severity, alert.code) == ("critical", "agents_without_object_store")
    assert alert.text.endswith(": b.")
    silent = replace(stalled, silent_ms=LIVENESS_MS)
    assert codes(alerts_of(replace(CLUSTER, agents=[agent("a"), silent]), WELL)) == [("warning", "agents_silent")]


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


# --- hand-overs ---


def tries(*states: TransferState, number: int = 0, age_ms: int = 1_000, to: str = "b") -> list[Transfer]:
    """Of one partition, newest first."""
    return [
        Transfer(
            transfer_id=UUID(int=order),
            topic="orders",
            partition=TopicPartition(UUID(int=1), number),
            from_agent_id="a",
            to_agent_id=to,
            state=state,
            reason=f"reason {order}",
            created_at_ms=NOW_MS - age_ms - order,
        )
        for order, state in enumerate(states)
    ]


FAILED, REJECTED, COMPLETED, PENDING = (
    TransferState.FAILED,
    TransferState.REJECTED,
    TransferState.COMPLETED,
    TransferState.PENDING,
)


def test_a_partition_that_cannot_be_handed_over_is_named_with_the_reason() -> None:
    failing = [*tries(PENDING, REJECTED, FAILED, REJECTED, COMPLETED), *tries(FAILED, FAILED, number=1)]
    (alert,) = alerts_of(replace(CLUSTER, transfers=failing), WELL)
    assert (alert.severity, alert.code) == ("warning", "hand_overs_stuck")
    assert "1 partition cannot be handed over" in alert.text
    assert "orders/0 to b failed 3 times in a row of late: reason 1" in alert.text


@pytest.mark.parametrize(
    "transfers",
    [
        tries(FAILED, REJECTED),
        tries(COMPLETED, FAILED, FAILED, FAILED),
        tries(FAILED, FAILED, COMPLETED, FAILED),
        tries(FAILED, FAILED, FAILED, age_ms=3_600_000),
        [*tries(FAILED), *tries(FAILED, FAILED, to="c")],
        [replace(each, from_agent_id="b", to_agent_id="a") for each in tries(FAILED, FAILED, FAILED)],
    ],
    ids=["twice", "done", "done between", "long ago", "to another", "of one that leads no longer"],
)
def test_hand_overs_that_fail_now_and_then_are_no_alert(transfers: list[Transfer]) -> None:
    assert alerts_of(replace(CLUSTER, transfers=transfers), WELL) == []


def test_a_cluster_in_which_a_hand_over_is_stuck_is_not_whole() -> None:
    assert wholeness_of(CLUSTER, NOW_MS).status == "ok"
    whole = wholeness_of(replace(CLUSTER, transfers=tries(FAILED, FAILED, FAILED)), NOW_MS)
    assert (whole.status, whole.stuck) == ("degraded", 1)
