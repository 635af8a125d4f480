"""Whoever makes partitions waits for their leaders, for as long as that makes sense."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from cluster_parts.agents import Agent, Cluster, a_cluster
from log_parts.engines import finishes
from streamhouse.cluster.first_leaders import FirstLeaders
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import SystemClock

LONG_MS = 600_000


def waiting(
    agent: Agent, partitions: list[TopicPartition], wait_ms: int = LONG_MS, group: str = "default"
) -> asyncio.Task[None]:
    leaders = FirstLeaders(agent.view, SystemClock())
    return asyncio.create_task(leaders.wait(partitions, group, wait_ms))


async def ends(work: Awaitable[object]) -> None:
    await finishes(work, "the wait for leaders")


async def new_partitions(cluster: Cluster, count: int = 4) -> list[TopicPartition]:
    topic = await cluster.topic(count)
    return [TopicPartition(topic.topic_id, number) for number in range(count)]


async def test_it_ends_when_a_look_shows_leaders_of_all_of_them() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        partitions = await new_partitions(cluster)
        await a.look()
        task = waiting(a, partitions)
        await a.look()
        await asyncio.sleep(0)
        assert not task.done(), "b leads nothing yet"

        await b.look()
        await a.look()

        await ends(task)
        assert all(a.view.leader_of(partition) for partition in partitions)


async def test_what_is_led_already_is_not_waited_for() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        partitions = await new_partitions(cluster)
        await a.look()
        await a.look()
        await ends(waiting(a, partitions))


async def test_where_no_agent_could_lead_nobody_waits() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        partitions = await new_partitions(cluster)
        await ends(waiting(a, partitions))
        await a.look()
        await ends(waiting(a, partitions, group="absent"))


@pytest.mark.parametrize("wait_ms", [-1, 0, 1, 50])
async def test_it_takes_no_longer_than_it_may(wait_ms: int) -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        partitions = await new_partitions(cluster)
        await a.look()
        await ends(waiting(a, partitions, wait_ms))
        assert not b.partitions.held


async def test_many_who_wait_share_the_looks_of_one() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        partitions = await new_partitions(cluster, 300)
        await a.look()
        tasks = [waiting(a, [partition]) for partition in partitions]
        await b.look()
        rounds = a.assigner.rounds["done"]
        await a.look()
        await ends(asyncio.gather(*tasks))
        assert a.assigner.rounds["done"] == rounds + 1
