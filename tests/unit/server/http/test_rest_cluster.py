"""The cluster and the node over REST: agents, leases, transfers, pipelines, health and measurements."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from node.wait import eventually
from rest_parts.caller import RestCaller
from rest_parts.sending import send
from streamhouse.model.errors import StorageUnavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.server.http.rest import pipeline_history
from streamhouse.spark.pipelines.registry import STATE_VARIABLE, QueryState, Registry, RunRecord, state_directory
from streamhouse.testing import Broker


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """For tests that do to it what others would notice."""
    with Broker(http=True, default_partitions=1) as broker:
        yield broker


def measured(rest: RestCaller, name: str) -> float:
    answer = rest.call("GET", "/metrics")
    assert (answer.status, answer.content_type) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = [line for line in answer.body.decode().splitlines() if line.partition(" ")[0].partition("{")[0] == name]
    assert len(lines) == 1, (name, answer.body)
    return float(lines[0].rpartition(" ")[2])


def test_agents_say_how_they_are_and_what_they_lead(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 3)
    (agent,) = rest.get("agents")["agents"]
    identity = own_broker.node.broker.identity
    assert (agent["agent_id"], agent["node_id"], agent["state"]) == (identity.agent_id, identity.node_id, "live")
    assert agent["kafka_address"] == own_broker.bootstrap
    assert (agent["partitions_led"], agent["shards_coordinated"]) == (3, 16)


def test_leases_are_found_by_topic_and_agent_and_come_in_pages(broker: Broker, rest: RestCaller) -> None:
    topic = f"leased-{uuid4().hex[:8]}"
    broker.create_topic(topic, 12)
    agent_id = broker.node.broker.identity.agent_id
    leases = rest.get(f"leases?topic={topic}&agent={agent_id}")["leases"]
    assert [(each["topic"], each["partition"]) for each in leases] == [(topic, number) for number in range(12)]
    assert all(each["is_live"] and each["lease_left_ms"] > 0 and each["epoch"] == 1 for each in leases)
    assert rest.get(f"leases?topic={topic}&agent=nobody")["leases"] == []
    first = rest.get(f"leases?topic={topic}&limit=9")
    assert first["next"] == f"{topic}/8"
    # By number, and not as text: 9 comes before 10.
    rest_of_them = rest.get(f"leases?topic={topic}&limit=9&after={first['next']}")
    assert [each["partition"] for each in rest_of_them["leases"]] == [9, 10, 11]
    assert rest_of_them["next"] is None


def test_a_lone_node_has_handed_nothing_over(rest: RestCaller) -> None:
    assert rest.get("transfers") == {"transfers": []}
    rest.refused(400, "invalid-input", "GET", "transfers?limit=0")


def test_pipelines_are_those_that_this_machine_knows_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    registry = Registry(state_directory(os.environ))
    run = RunRecord(
        name="revenue",
        file="revenue.yaml",
        master="local[*]",
        pid=os.getpid(),
        started_at_ms=1,
        updated_at_ms=SystemClock().now_ms(),
        dead_letters=3,
        dead_letter_topic="orders-dead",
        queries=[QueryState(query="sums", guarantee="exactly once", batch_id=4, lag={"orders/0": 5})],
    )
    with Broker(http=True) as broker:
        rest = RestCaller(broker.endpoint)
        assert rest.get("pipelines") == {"pipelines": []}
        with registry.register("revenue") as registration:
            registration.write(run)
            (shown,) = rest.get("pipelines")["pipelines"]
            broker.create_topic("orders-dead", 1)
            (letters,) = rest.get("pipelines")["pipelines"]
            registration.write(msgspec.structs.replace(run, updated_at_ms=run.updated_at_ms - 60_000))
            (silent,) = rest.get("pipelines")["pipelines"]
            (alert,) = rest.get("overview")["alerts"]
        (left,) = rest.get("pipelines")["pipelines"]
    assert (shown["name"], shown["state"]) == ("revenue", "running")
    assert (shown["dead_letters"], shown["dead_letter_topic"]) == (3, "orders-dead")
    assert [(query["query"], query["batch_id"], query["lag"]) for query in shown["queries"]] == [
        ("sums", 4, {"orders/0": 5})
    ]
    assert (shown["has_dead_letter_topic"], letters["has_dead_letter_topic"]) == (False, True)
    assert (silent["state"], left["state"]) == ("silent", "died")
    assert (alert["code"], alert["pipelines"]) == ("pipelines_silent", ["revenue"])


def test_the_history_of_a_pipeline_is_that_of_its_own_queries(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    monkeypatch.setattr(pipeline_history, "PERIOD_MS", 50)
    sums = QueryState(
        query="sums", guarantee="exactly once", batch_id=4, rows_per_second=7.5, lag={"orders/0": 5, "orders/1": 6}
    )
    letters = QueryState(
        query="dead_letter", guarantee="at least once", batch_id=4, rows_per_second=99.0, lag={"x/0": 99}
    )
    run = RunRecord(
        name="revenue",
        file="revenue.yaml",
        master="local[*]",
        pid=os.getpid(),
        started_at_ms=1,
        updated_at_ms=SystemClock().now_ms(),
        queries=[
            sums,
            msgspec.structs.replace(sums, query="counts", rows_per_second=1.5, lag={"orders/0": 3}),
            letters,
        ],
    )
    with Broker(http=True) as broker, Registry(state_directory(os.environ)).register("revenue") as registration:
        rest = RestCaller(broker.endpoint)

        def seen(rows_per_second: float | None, lag: float | None) -> bool:
            [found] = rest.get("pipelines/history")["pipelines"] or [{"name": "revenue", "times_ms": []}]
            assert found["name"] == "revenue"
            if not found["times_ms"]:
                return False
            assert len(found["times_ms"]) == len(found["rows_per_second"]) == len(found["lag"])
            return (found["rows_per_second"][-1], found["lag"][-1]) == (rows_per_second, lag)

        registration.write(run)
        eventually(lambda: seen(9.0, 11), "rows of its two queries, and the lag of the one that is further behind")
        registration.write(msgspec.structs.replace(run, queries=[letters]))
        eventually(lambda: seen(0, None), "a pipeline that has not begun to read")
        registration.write(msgspec.structs.replace(run, updated_at_ms=run.updated_at_ms - 60_000))
        eventually(lambda: seen(None, 11), "one that is silent")


def test_records_of_pipelines_that_are_odd_keep_nobody_from_the_overview(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    registry = Registry(state_directory(os.environ))
    run = RunRecord(
        name="later", file="f.yaml", master="local", pid=1, started_at_ms=1, updated_at_ms=1, state="suspended"
    )
    with registry.register("later") as registration:
        registration.write(run)
    (tmp_path / "pipelines" / "latin.json").write_bytes(b'{"name": "caf\xe9"}')
    (tmp_path / "pipelines" / "directory.json").mkdir()
    with Broker(http=True) as broker:
        rest = RestCaller(broker.endpoint)
        assert [(each["name"], each["state"]) for each in rest.get("pipelines")["pipelines"]] == [("later", "unknown")]
        assert rest.get("overview")["alerts"] == []


def test_a_whole_cluster_is_well_and_one_without_leaders_is_not(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    own_broker.create_topic("orders", 2)
    health = rest.get("cluster/health")
    assert (health["status"], health["live_agents"], health["agents"]) == ("ok", 1, 1)
    assert (health["topics"], health["partitions"], health["partitions_without_leader"]) == (1, 2, 0)
    # A topic that only agents of a group may lead of which there is none.
    rest.post(
        "topics", {"name": "lost", "partition_count": 1, "config": {"streamhouse.agent.group": "gone"}}, status=201
    )
    health = rest.get("cluster/health")
    assert (health["status"], health["partitions_without_leader"]) == ("degraded", 1)
    (partition,) = rest.get("topics/lost/partitions")["partitions"]
    assert (partition["leader"], partition["leader_node_id"], partition["high_watermark"]) == (None, None, 0)


def test_a_node_is_ready_while_it_counts_as_alive(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    assert rest.get("/health/live") == {"status": "ok"}
    assert rest.get("/health/ready") == {"status": "ok"}
    agent_id = own_broker.node.broker.identity.agent_id
    own_broker._run(own_broker._metadata.drain_agent(agent_id))
    problem = eventually(
        lambda: (answer := rest.call("GET", "/health/ready")).status == 503 and answer.json, "a node that is not ready"
    )
    assert problem["code"] == "unavailable"
    assert agent_id in problem["detail"]
    assert rest.get("/health/live") == {"status": "ok"}


def test_a_node_whose_storage_was_taken_away_is_not_ready(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    assert rest.get("/health/ready") == {"status": "ok"}

    async def take_away() -> None:
        own_broker.node.engine.give_up_disk(StorageUnavailable("the node's storage is gone: wal was removed"))

    own_broker._run(take_away())
    problem = rest.refused(503, "storage-unavailable", "GET", "/health/ready")
    assert "wal was removed" in problem["detail"]


def test_measurements_are_of_this_node_and_change_with_it(own_broker: Broker) -> None:
    rest = RestCaller(own_broker.endpoint)
    assert measured(rest, "streamhouse_topics") == 0
    own_broker.create_topic("orders", 3)
    send(own_broker, "orders", partition=1, count=7)
    assert measured(rest, "streamhouse_topics") == 1
    assert measured(rest, "streamhouse_partitions") == measured(rest, "streamhouse_partitions_led") == 3
    assert measured(rest, "streamhouse_led_high_watermarks") == 7
    assert measured(rest, "streamhouse_led_unuploaded_records") == 7
    assert measured(rest, "streamhouse_buffer_bytes") > 0
    own_broker.flush()
    assert measured(rest, "streamhouse_led_unuploaded_records") == 0
    assert measured(rest, "streamhouse_build_info") == 1
    assert measured(rest, "process_resident_memory_bytes") > 2**20
    assert measured(rest, "process_open_fds") > 3
    rest.post("groups/readers/members", {"topics": ["orders"]}, status=201)
    assert measured(rest, "streamhouse_rest_group_members") == 1
