"""What somebody is told to look at: each trouble by itself, the worst first, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import pytest

from streamhouse.broker.cluster_work import Asked
from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import ClusterState
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.core.placement.transfer import TransferState
from streamhouse.metadata.cluster import AgentInfo, AgentRow, Placement, ShardPlacement, Transfer
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.measures import Histogram
from streamhouse.runtime.watched import Silence
from streamhouse.server.http.rest import alerts as rest_alerts
from streamhouse.server.http.rest.cluster import wholeness_of
from streamhouse.server.http.rest.watch import Seen
from streamhouse.wire.http.rest.console import MAX_LINKS, Alert, AlertPartition

LIVENESS_MS = 10_000
NOW_MS = 1_750_000_000_000
WELL = NodeWork(
    records_in=0,
    bytes_in=0,
    records_out=0,
    bytes_out=0,
    produce_p50_ms=1.0,
    produce_p99_ms=2_000.0,
    buffered_bytes=0,
    buffer_limit_bytes=1000,
    ends={},
)


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


def alerts_of(
    cluster: ClusterState,
    node: NodeWork = WELL,
    *,
    answers: Mapping[str, NodeWork] | None = None,
    silent: Mapping[str, Silence] | None = None,
    metadata_silence: Silence | None = None,
    usual_waits_ms: Mapping[str, float] | None = None,
) -> list[Alert]:
    """At node "a"; `answers` and `silent` are the others."""
    others = answers or {}
    seen = Seen(cluster, NOW_MS, metadata_silence, Asked(others, silent or {}))
    return rest_alerts.alerts_of(seen, {"a": node, **others}, NOW_MS, usual_waits_ms=usual_waits_ms or {})


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


def draining(agent_id: str, agent_group: str = "default") -> AgentRow:
    row = agent(agent_id)
    return replace(row, is_draining=True, info=replace(row.info, agent_group=agent_group))


def test_agents_that_all_drain_keep_what_they_lead_and_the_cluster_is_not_down() -> None:
    all_of_them = replace(CLUSTER, agents=[draining("a"), draining("b")])
    (alert,) = alerts_of(all_of_them)
    assert (alert.severity, alert.code, alert.agents) == ("warning", "agents_all_draining", ["a", "b"])
    assert alert.text.startswith("All agents that are alive are draining: a, b. What they lead stays with them")
    assert not wholeness_of(all_of_them, NOW_MS).is_down
    beside_a_silent_one = replace(CLUSTER, agents=[draining("a"), agent("b", silent_ms=LIVENESS_MS)])
    assert [each.code for each in alerts_of(beside_a_silent_one)] == ["agents_all_draining", "agents_silent"]
    assert alerts_of(replace(CLUSTER, agents=[draining("a"), agent("b")])) == []


def test_agents_that_all_drain_are_told_of_for_each_agent_group() -> None:
    (alert,) = alerts_of(replace(CLUSTER, agents=[agent("a"), draining("b", "far")]))
    assert (alert.code, alert.agents) == ("agents_all_draining", ["b"])
    assert alert.text.startswith("All agents of agent group far that are alive are draining: b.")


def test_agents_that_drain_and_have_nothing_left_are_as_good_as_none() -> None:
    emptied = replace(CLUSTER, agents=[draining("b"), agent("c", silent_ms=LIVENESS_MS)], placements=[], shards=[])
    assert wholeness_of(emptied, NOW_MS).is_down
    none, coordinators = alerts_of(emptied)
    assert (none.code, none.agents) == ("no_live_agent", ["b", "c"])
    assert none.text.startswith("No agent is alive but b, draining and with nothing left: nothing can be written")
    assert coordinators.code == "groups_without_coordinator"


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
    assert alert.agents == [], "nobody has ever coordinated them"


def test_shards_without_coordinator_lead_to_the_agents_that_had_them_last() -> None:
    lost = [
        ShardPlacement(shard=shard, agent_id=agent_id, epoch=1, lease_left_ms=0)
        for shard, agent_id in enumerate(["b", "forgotten", "b"])
    ]
    (alert,) = alerts_of(replace(CLUSTER, shards=[*lost, *CLUSTER.shards[3:]]))
    assert (alert.code, alert.agents) == ("groups_without_coordinator", ["b"])


def test_the_worst_comes_first() -> None:
    troubled = replace(WELL, buffered_bytes=800, wal_problem="the WAL cannot be written: No space left on device")

    alerts = alerts_of(replace(CLUSTER, agents=[agent("a"), agent("b", silent_ms=LIVENESS_MS)]), troubled)

    assert codes(alerts) == [
        ("critical", "wal_not_writable"),
        ("warning", "agents_silent"),
        ("warning", "buffer_nearly_full"),
    ]
    assert "No space left" in alerts[0].text
    assert "800 of 1000 bytes at a" in alerts[2].text


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
    failing = [*tries(PENDING, REJECTED, FAILED, REJECTED, COMPLETED), *tries(FAILED, FAILED, number=1, age_ms=60_000)]
    (alert,) = alerts_of(replace(CLUSTER, transfers=failing), WELL)
    assert (alert.severity, alert.code) == ("warning", "hand_overs_stuck")
    assert "1 partition cannot be handed over" in alert.text
    assert "orders/0 to b failed 3 times in a row of late: reason 1" in alert.text


@pytest.mark.parametrize(
    "transfers",
    [
        tries(FAILED, REJECTED, age_ms=60_000),
        tries(COMPLETED, FAILED, FAILED, FAILED),
        tries(FAILED, FAILED, COMPLETED, FAILED, age_ms=60_000),
        tries(FAILED, FAILED, FAILED, age_ms=3_600_000),
        [replace(each, from_agent_id="b", to_agent_id="a") for each in tries(FAILED, FAILED, FAILED)],
    ],
    ids=["twice, a while ago", "done", "done between", "long ago", "of one that leads no longer"],
)
def test_hand_overs_that_are_not_wanted_any_more_are_no_alert(transfers: list[Transfer]) -> None:
    assert alerts_of(replace(CLUSTER, transfers=transfers), WELL) == []


@pytest.mark.parametrize(
    ("transfers", "told"),
    [
        (tries(FAILED), "orders/0 to b failed once of late: reason 0"),
        (tries(PENDING, FAILED, REJECTED), "orders/0 to b failed 2 times in a row of late: reason 1"),
        ([*tries(FAILED), *tries(FAILED, FAILED, to="c")], "orders/0 to b failed once of late: reason 0"),
    ],
    ids=["once", "twice", "to another before"],
)
def test_a_hand_over_that_fails_is_told_of_at_once(transfers: list[Transfer], told: str) -> None:
    (alert,) = alerts_of(replace(CLUSTER, transfers=transfers))
    assert (alert.severity, alert.code) == ("warning", "hand_overs_failing")
    assert told in alert.text
    assert (alert.agents, alert.partitions) == (["a", "b"], [AlertPartition(topic="orders", partition=0)])


def test_a_cluster_in_which_a_hand_over_is_stuck_is_not_whole() -> None:
    assert wholeness_of(CLUSTER, NOW_MS).stuck == 0
    assert wholeness_of(replace(CLUSTER, transfers=tries(FAILED, FAILED, FAILED)), NOW_MS).stuck == 1


# --- who does not answer ---

MUTE = Silence(NOW_MS - 7_000, "b:50052 cannot be reached")


def test_an_agent_that_does_not_answer_is_named_though_its_heartbeats_come() -> None:
    (alert,) = alerts_of(CLUSTER, silent={"b": MUTE})
    assert (alert.severity, alert.code) == ("warning", "agents_not_answering")
    assert "1 of 2 agents does not answer this node: b." in alert.text
    assert "b has not for 7 s: b:50052 cannot be reached" in alert.text
    assert alert.agents == ["b"]


def test_an_agent_without_heartbeats_is_told_of_once_with_the_command_that_forgets_it() -> None:
    gone = replace(CLUSTER, agents=[agent("a"), agent("b", silent_ms=LIVENESS_MS)])
    (alert,) = alerts_of(gone, silent={"b": MUTE})
    assert (alert.code, alert.commands) == ("agents_silent", ["streamhouse agent forget b --metadata postgresql://…"])


def test_an_agent_that_answers_without_heartbeats_is_cut_off_and_not_gone() -> None:
    gone = replace(CLUSTER, agents=[agent("a"), agent("b", silent_ms=LIVENESS_MS)])
    (alert,) = alerts_of(gone, answers={"b": WELL})
    assert (alert.code, alert.agents, alert.commands) == ("agents_without_metadata_store", ["b"], [])


def test_of_a_cluster_whose_metadata_store_is_silent_only_that_is_told_and_what_nodes_say() -> None:
    old = replace(CLUSTER, placements=[placement(0, lease_left_ms=0)], agents=[agent("a", silent_ms=LIVENESS_MS)])
    away = Silence(NOW_MS - 12_000, "no answer within 2000 ms")
    slow = replace(WELL, produce_p99_ms=3_000.0)
    alerts = alerts_of(old, slow, silent={"b": MUTE}, metadata_silence=away)
    assert codes(alerts) == [
        ("critical", "metadata_store_away"),
        ("warning", "agents_not_answering"),
        ("warning", "produce_slow"),
    ]
    assert "does not answer this node for 12 s: no answer within 2000 ms" in alerts[0].text
    assert alerts[0].agents == ["a"], "the one that says so"


def test_slow_produces_of_any_node_are_told_of() -> None:
    slow = {"b": replace(WELL, produce_p99_ms=2_501.0), "c": replace(WELL, produce_p99_ms=9_950.0)}
    (alert,) = alerts_of(CLUSTER, answers={**slow, "d": replace(WELL, produce_p99_ms=None)})
    assert (alert.severity, alert.code, alert.agents) == ("warning", "produce_slow", ["b", "c"])
    assert "at b, c: one in a hundred for more than 5 s at c" in alert.text


def test_a_wait_of_a_second_is_not_told_to_be_a_longer_one() -> None:
    waits = Histogram()
    waits.observe(1.01)
    p99_s = waits.quantile(0.99)
    assert p99_s is not None
    waited = {"b": replace(WELL, produce_p99_ms=1_000 * p99_s)}
    assert alerts_of(CLUSTER, answers=waited) == []
    (slower,) = alerts_of(CLUSTER, answers=waited, usual_waits_ms={"b": 10.0})
    assert "one in a hundred for more than 1000 ms at b" in slower.text


def test_producers_that_wait_far_longer_than_they_used_to_are_told_of_with_what_that_was() -> None:
    waits = {"b": replace(WELL, produce_p99_ms=1_900.0), "c": replace(WELL, produce_p99_ms=2_501.0)}
    slow, slower = alerts_of(CLUSTER, answers=waits, usual_waits_ms={"b": 10.0, "c": 10.0, "gone": 1.0})
    assert (slow.code, slow.agents) == ("produce_slow", ["c"])
    assert (slower.severity, slower.code, slower.agents) == ("warning", "produce_slower", ["b"])
    assert "more than 1000 ms at b in the last minute; the median of that node's hour is 10.0 ms." in slower.text


def test_segments_that_do_not_get_into_the_store_are_told_of() -> None:
    stuck = {"b": replace(WELL, oldest_upload_ms=20_001), "c": replace(WELL, oldest_upload_ms=20_000)}
    (alert,) = alerts_of(CLUSTER, answers=stuck)
    assert (alert.severity, alert.code, alert.agents) == ("warning", "uploads_stuck", ["b"])
    assert "b has tried for 20 s" in alert.text


def test_alerts_lead_to_what_they_are_about_and_to_the_command_that_only_a_person_runs() -> None:
    lost = [placement(number, lease_left_ms=0, wal_agent_id="c") for number in range(30)]
    (alert,) = alerts_of(replace(CLUSTER, placements=lost))
    assert alert.agents == ["c"]
    assert alert.partitions == [AlertPartition(topic="orders", partition=number) for number in range(MAX_LINKS)]
    assert alert.commands[0] == "streamhouse partition elect orders 0 --unclean --metadata postgresql://…"
    assert len(alert.commands) == 3
