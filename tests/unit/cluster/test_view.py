"""What a node knows of the cluster: as it was at the last look."""

from __future__ import annotations

from uuid import uuid4

import pytest

from cluster_parts.agents import LIVENESS_MS, TTL_MS, Agent, a_cluster, info
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.model.names import TopicPartition


def live_ids(agent: Agent) -> list[str]:
    return [row.info.agent_id for row in agent.view.live]


def reachable_ids(agent: Agent) -> list[str]:
    return sorted(row.info.agent_id for row in agent.view.reachable)


async def test_before_the_first_look_nothing_is_known() -> None:
    async with a_cluster() as cluster:
        agent = await cluster.join("a")

        assert (agent.view.live, agent.view.reachable, agent.view.placements) == ([], [], {})
        assert agent.view.leader_of(TopicPartition(uuid4(), 0)) is None
        assert agent.view.coordinator_of(3) is None


async def test_the_holder_of_a_live_lease_is_the_leader_with_its_epoch() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        topic = await cluster.topic(1)
        partition = TopicPartition(topic.topic_id, 0)
        for _ in range(3):
            await cluster.store.acquire_leases("b", [partition], TTL_MS)
        await a.view.refresh()

        found = a.view.leader_of(partition)

        assert found is not None
        assert (found.agent.info, found.epoch) == (b.membership.info, 3)


async def test_a_lease_that_ran_out_was_released_or_never_taken_has_no_leader() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        topic = await cluster.topic(3)
        partitions = [TopicPartition(topic.topic_id, number) for number in range(3)]
        ran_out, released = await cluster.store.acquire_leases("a", partitions[:2], 1_000)
        assert ran_out is not None
        assert released is not None
        await cluster.store.release_leases("a", [released], drained=True)
        cluster.clock.pass_time(1_001)
        await a.view.refresh()

        assert [a.view.leader_of(partition) for partition in partitions] == [None, None, None]


async def test_the_lease_of_an_agent_that_is_not_registered_names_no_leader() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        topic = await cluster.topic(1)
        partition = TopicPartition(topic.topic_id, 0)
        await cluster.store.acquire_leases("nobody", [partition], TTL_MS)
        await cluster.store.acquire_shards("nobody", [4], TTL_MS)
        await a.view.refresh()

        assert a.view.leader_of(partition) is None
        assert a.view.coordinator_of(4) is None


async def test_the_holder_of_a_shard_is_its_coordinator_while_its_lease_is_live() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.store.acquire_shards("a", [4], 1_000)
        await a.view.refresh()
        found = a.view.coordinator_of(4)
        assert found is not None
        assert found.info.agent_id == "a"
        assert a.view.coordinator_of(5) is None

        cluster.clock.pass_time(1_001)
        await a.view.refresh()

        assert a.view.coordinator_of(4) is None


async def test_a_draining_agent_may_not_lead_but_can_be_reached() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        await b.membership.drain()
        await a.view.refresh()

        assert (live_ids(a), reachable_ids(a)) == (["a"], ["a", "b"])


async def test_a_silent_agent_is_neither_live_nor_reachable_but_known() -> None:
    async with a_cluster() as cluster:
        a, _ = await cluster.join("a"), await cluster.join("b")
        cluster.clock.pass_time(LIVENESS_MS)
        await a.membership.beat()
        await a.view.refresh()

        assert (live_ids(a), reachable_ids(a), list(a.view.agents)) == (["a"], ["a"], ["a", "b"])


async def test_when_nobody_was_heard_of_for_long_a_node_names_itself_and_an_observer_names_all() -> None:
    """As after the database was away: a client that is told of no node has none left to ask."""
    async with a_cluster() as cluster:
        a, _ = await cluster.join("a"), await cluster.join("b")
        observer = Agent(cluster, info("observer"), is_observer=True)
        cluster.clock.pass_time(10 * LIVENESS_MS)
        for agent in (a, observer):
            await agent.view.refresh()

        assert (reachable_ids(a), reachable_ids(observer)) == (["a"], ["a", "b"])


async def test_a_node_that_others_found_dead_names_itself() -> None:
    async with a_cluster() as cluster:
        a, _ = await cluster.join("a"), await cluster.join("b")
        topic = await cluster.topic(1)
        partition = TopicPartition(topic.topic_id, 0)
        await cluster.store.acquire_leases("a", [partition], 1_000)
        cluster.clock.pass_time(1_500)
        await cluster.store.acquire_leases("b", [partition], TTL_MS)
        await a.view.refresh()
        assert a.view.agents["a"].is_found_dead

        assert reachable_ids(a) == ["a", "b"]


async def test_a_node_that_cannot_look_names_the_others_and_itself_only_if_there_is_none() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.view.refresh()
        cluster.clock.pass_time(2 * TTL_MS)
        assert reachable_ids(a) == ["a"]

        await cluster.join("b")
        await a.membership.beat()
        await a.view.refresh()
        cluster.clock.pass_time(2 * TTL_MS)

        assert reachable_ids(a) == ["b"]


@pytest.mark.parametrize("kind", ["partition", "shard"])
async def test_an_agent_that_let_a_lease_run_out_is_not_live_until_it_is_heard_of_again(kind: str) -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        topic = await cluster.topic(1)
        if kind == "partition":
            await cluster.store.acquire_leases("b", [TopicPartition(topic.topic_id, 0)], 1_000)
        else:
            await cluster.store.acquire_shards("b", [3], 1_000)
        cluster.clock.pass_time(1_500)
        await a.view.refresh()
        assert live_ids(a) == ["a"]

        await b.membership.beat()
        await a.view.refresh()

        assert live_ids(a) == ["a", "b"]


@pytest.mark.parametrize("step", ["list_agents", "list_placements", "list_shard_placements"])
async def test_a_look_that_fails_leaves_what_was_known(step: str) -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic(1)
        await a.view.refresh()
        known = (a.view.agents, a.view.live, a.view.placements, a.view.shards)
        await cluster.store.register_agent(info("b"), 0)
        cluster.store.fail(step)

        with pytest.raises(MetadataUnavailable):
            await a.view.refresh()

        assert (a.view.agents, a.view.live, a.view.placements, a.view.shards) == known
