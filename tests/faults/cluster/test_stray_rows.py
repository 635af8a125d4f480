"""Rows that no agent wrote: somebody tries the tables out by hand, and nobody else notices."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from faults.cluster.steady import assert_unmoved, needs_steady_leases
from faults.cluster.watch import Watch, metric
from node.admin import create_topic
from node.cluster import Agent, Cluster
from node.raw import RawConnection
from node.wait import eventually

NAME = "test-agent-1"
INSERT = f"""
    INSERT INTO agents (agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata)
    VALUES ('{NAME}', '127.0.0.1:9090', 'local', 'default',
        extract(epoch from now())*1000, extract(epoch from now())*1000, '{{}}'::jsonb)
    RETURNING agent_id
"""

pytestmark = pytest.mark.parametrize("durability", ["object"])


@contextmanager
def row_by_hand(cluster: Cluster) -> Iterator[Watch]:
    """After a row was inserted that looks alive, and each agent has looked twice since."""
    watch = Watch(cluster)
    watch.wait_settled()
    before = {agent.name: rounds(agent) for agent in cluster.agents.values()}
    cluster.storage.query(INSERT)
    try:
        eventually(
            lambda: all(rounds(agent) >= before[agent.name] + 2 for agent in cluster.agents.values()),
            "every agent to look twice",
            pause=0.1,
        )
        yield watch
    finally:
        cluster.storage.query(f"DELETE FROM agents WHERE agent_id = '{NAME}' RETURNING agent_id")


def rounds(agent: Agent) -> float:
    return metric(agent, 'streamhouse_rebalance_rounds_total{result="done"}')


def ask(agent: Agent, path: str) -> Any:
    with urllib.request.urlopen(f"{agent.http}/api/v1/{path}") as answer:
        return json.load(answer)


@needs_steady_leases
def test_it_takes_nothing_from_anybody_and_breaks_no_listing(cluster: Cluster) -> None:
    topic = cluster.new_topic()
    create_topic(cluster.bootstrap, topic, 12)
    cluster.wait_led(topic)
    with row_by_hand(cluster) as watch:
        given_up = [key for key, held in watch.look().items() if not held.is_live]
        assert_unmoved(not given_up, f"let go for a row that nobody stands behind: {given_up}")
        moved = {key: seen for key, seen in watch.history.items() if len(seen) > 1}
        assert_unmoved(not moved, f"changed hands because of a row that nobody stands behind: {moved}")
        assert [
            row for row in cluster.storage.query("SELECT to_agent_id FROM partition_transfers") if NAME in row
        ] == []

        states = {agent["agent_id"]: agent["state"] for agent in cluster.run_json("agent", "list")}
        assert states == {"a1": "live", "a2": "live", "a3": "live", NAME: "silent"}
        asked = cluster.agents["a1"]
        assert {agent["agent_id"] for agent in ask(asked, "agents")["agents"]} == states.keys()
        assert ask(asked, "overview")["cluster"]["live_agents"] == 3
        with RawConnection(asked.address) as raw:
            assert len(raw.metadata().brokers) == 3
