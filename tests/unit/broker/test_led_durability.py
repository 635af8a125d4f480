"""A topic that says no durability has that of the agents which lead it, whatever the defaults of whoever is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cluster_parts.agents import LIVENESS_MS, TTL_MS, Cluster, a_cluster, info
from streamhouse.broker.led_durability import MIXED, LedDurability
from streamhouse.cluster.view import ClusterView
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic, effective_config


async def register(cluster: Cluster, agents: Mapping[str, str], group: str = "default") -> None:
    for agent_id, durability in agents.items():
        await cluster.store.register_agent(replace(info(agent_id, group=group), durability=durability), 0)


async def told(cluster: Cluster, topic: Topic) -> str:
    """By a node whose own default is `wal`."""
    view = ClusterView(cluster.store, cluster.clock, agent_id="", liveness_ms=LIVENESS_MS, lease_ttl_ms=TTL_MS)
    await view.refresh()
    return LedDurability(view).of(topic, effective_config(topic.config, {"streamhouse.durability": "wal"}))


@pytest.mark.parametrize("agents", [{"a": "object"}, {"a": "object", "b": "object"}, {"a": "object", "old": ""}])
async def test_it_is_that_of_the_agents(agents: dict[str, str]) -> None:
    async with a_cluster() as cluster:
        await register(cluster, agents)
        assert await told(cluster, await cluster.topic()) == "object"


async def test_where_no_agent_has_told_its_own_that_of_the_node_counts() -> None:
    async with a_cluster() as cluster:
        topic = await cluster.topic()
        assert await told(cluster, topic) == "wal"
        await register(cluster, {"old": ""})
        assert await told(cluster, topic) == "wal"


async def test_what_the_topic_says_itself_counts() -> None:
    async with a_cluster() as cluster:
        await register(cluster, {"a": "wal", "b": "wal"})
        assert await told(cluster, await cluster.topic(durability="object")) == "object"


async def test_only_agents_of_its_group_that_are_there_are_heard() -> None:
    async with a_cluster() as cluster:
        await register(cluster, {"gone": "wal"})
        cluster.clock.pass_time(LIVENESS_MS)
        await register(cluster, {"here": "object"})
        await register(cluster, {"other": "wal"}, group="batch")
        assert await told(cluster, await cluster.topic()) == "object"


async def test_that_of_agents_which_are_silent_counts_as_long_as_nobody_else_is_heard() -> None:
    async with a_cluster() as cluster:
        topic = await cluster.topic()
        await register(cluster, {"a": "object"})
        await register(cluster, {"b": "wal"}, group="batch")
        cluster.clock.pass_time(LIVENESS_MS)
        assert await told(cluster, topic) == "object"
        await register(cluster, {"c": "wal"})
        assert await told(cluster, topic) == "wal"


async def test_where_agents_differ_those_that_lead_it_say_so() -> None:
    async with a_cluster() as cluster:
        await register(cluster, {"a": "object", "b": "wal"})
        topic = await cluster.topic(2)
        assert await told(cluster, topic) == MIXED, "nobody leads it yet"
        first, second = (TopicPartition(topic.topic_id, number) for number in range(2))
        await cluster.store.acquire_leases("a", [first], TTL_MS)
        assert await told(cluster, topic) == "object"
        await cluster.store.acquire_leases("b", [second], TTL_MS)
        assert await told(cluster, topic) == MIXED
