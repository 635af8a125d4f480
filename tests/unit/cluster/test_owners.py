"""Owners are chosen once for all agents, evenly, and stay where they are until an agent comes or goes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping
from uuid import uuid4

import pytest

from cluster_parts.agents import LIVENESS_MS, TTL_MS, Agent, Cluster, a_cluster
from streamhouse.cluster import owners as module
from streamhouse.core.placement.assignment import Candidate
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic

Key = tuple[str, int]


async def topic(cluster: Cluster, name: str, partitions: int, **config: str) -> Topic:
    named = {f"streamhouse.{key.replace('_', '.')}": value for key, value in config.items()}
    return await cluster.store.create_topic(name, uuid4(), partitions, named)


async def leaders(cluster: Cluster) -> dict[Key, str]:
    return {
        (placement.topic, placement.partition.partition): placement.agent_id
        for placement in await cluster.placements()
        if placement.lease_left_ms > 0
    }


async def owners(cluster: Cluster) -> dict[Key, str]:
    return {(each.topic, each.partition.partition): each.owner for each in await cluster.placements()}


async def moved_by(cluster: Cluster, *agents: Agent) -> set[Key]:
    """Which partitions have other leaders when these agents, and nobody else, have looked again and again."""
    before = await leaders(cluster)
    for _ in range(6):
        for agent in agents:
            await agent.look()
    after = await leaders(cluster)
    return {key for key in before if before[key] != after.get(key)}


@pytest.mark.parametrize("durability", ["wal", "object"])
async def test_six_partitions_on_three_agents_are_two_each(durability: str) -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        for agent in agents:
            agent.partitions.in_local_wal = durability == "wal"
        for number in range(8):
            await topic(cluster, f"topic-{number}", 6, durability=durability)
            await cluster.settle(1)

        led = await leaders(cluster)
        for number in range(8):
            counts = Counter(led[f"topic-{number}", partition] for partition in range(6))
            assert counts == {"a": 2, "b": 2, "c": 2}


async def test_agents_that_decide_at_once_follow_one_of_them() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        await topic(cluster, "orders", 12)

        await asyncio.gather(*(agent.look() for agent in agents))

        assert (await cluster.store.load_owner_decision()).version == 1
        assert Counter((await leaders(cluster)).values()) == {"a": 4, "b": 4, "c": 4}
        assert await cluster.store.list_transfers() == []


async def test_who_looked_before_another_decided_takes_what_that_one_decided() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        created = await topic(cluster, "orders", 2)
        decide = cluster.store.decide_owners
        other = {TopicPartition(created.topic_id, 0): "b", TopicPartition(created.topic_id, 1): "a"}

        async def overtaken(
            version: int, candidates: Collection[Candidate], chosen: Mapping[TopicPartition, str]
        ) -> bool:
            assert await decide(version, candidates, other)
            return await decide(version, candidates, chosen)

        cluster.store.decide_owners = overtaken  # type: ignore[method-assign]
        await a.look()
        await b.look()

        assert await leaders(cluster) == {("orders", 0): "b", ("orders", 1): "a"}


async def test_before_anything_was_decided_those_that_lead_are_the_owners_as_far_as_caps_allow() -> None:
    """As after an upgrade from a version in which the ring alone placed partitions."""
    async with a_cluster() as cluster:
        a, b, c = [await cluster.join(name) for name in "abc"]
        uneven = await topic(cluster, "uneven", 7)
        even = await topic(cluster, "even", 6)
        await a.partitions.take([TopicPartition(uneven.topic_id, number) for number in (0, 2, 4, 6)])
        await b.partitions.take([TopicPartition(uneven.topic_id, number) for number in (1, 5)])
        await c.partitions.take([TopicPartition(uneven.topic_id, 3)])
        for number, agent in enumerate((b, b, c, a, c, a)):
            await agent.partitions.take([TopicPartition(even.topic_id, number)])

        (moved,) = await moved_by(cluster, a, b, c)
        led = await leaders(cluster)
        assert moved[0] == "uneven"
        assert led[moved] == "c"
        assert await owners(cluster) == led


async def test_topics_that_come_grow_and_go_move_nothing() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        first = await topic(cluster, "first", 7)
        second = await topic(cluster, "second", 5)
        await cluster.settle(2)

        await topic(cluster, "third", 4)
        assert await moved_by(cluster, *agents) == set()
        await cluster.store.grow_topic(second, 11)
        assert await moved_by(cluster, *agents) == set()
        await cluster.store.delete_topic(first.topic_id)
        assert {key for key in await moved_by(cluster, *agents) if key[0] != "first"} == set()
        assert await cluster.store.list_transfers() == []
        assert (
            max(Counter(owner for (name, _), owner in (await owners(cluster)).items() if name == "second").values())
            == 4
        )


@pytest.mark.parametrize("durability", ["wal", "object"])
async def test_an_agent_that_comes_gets_its_part_and_what_goes_is_its_part(durability: str) -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        for agent in agents:
            agent.partitions.in_local_wal = durability == "wal"
        for number in range(4):
            await topic(cluster, f"topic-{number}", 6)
        await cluster.settle(2)
        before = await leaders(cluster)

        d = await cluster.join("d")
        d.partitions.in_local_wal = durability == "wal"
        moved = await moved_by(cluster, *agents, d)
        led = await leaders(cluster)
        assert moved == {key for key, leader in led.items() if leader == "d"}
        assert len(moved) == 6

        await cluster.store.drain_agent("d")
        assert await moved_by(cluster, *agents, d) == moved
        assert await leaders(cluster) == before


async def test_after_a_restart_of_all_agents_the_partitions_are_even_again() -> None:
    async with a_cluster() as cluster:
        for name in "abc":
            await cluster.join(name)
        await topic(cluster, "orders", 9)
        await cluster.settle(2)
        for agent in cluster.agents:
            await cluster.store.release_leases(agent.agent_id, list(agent.partitions.leases.values()), drained=True)
            await cluster.store.deregister_agent(agent.agent_id)
        cluster.agents.clear()

        for name in "bca":
            await cluster.join(name)
            await cluster.settle(2)

        await cluster.settle()
        assert Counter((await leaders(cluster)).values()) == {"a": 3, "b": 3, "c": 3}


async def test_what_waits_for_the_disk_of_a_dead_agent_stays_its_own_and_counts_for_nobody() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        c = await cluster.join("c")
        for agent in (a, b, c):
            agent.partitions.in_local_wal = True
        await topic(cluster, "orders", 6)
        await cluster.settle(2)
        before = await owners(cluster)

        cluster.clock.pass_time(TTL_MS + 1)
        cluster.agents.remove(c)
        for agent in (a, b):
            await agent.membership.beat()
            await agent.keep_leases()
        await cluster.settle(2)
        assert await owners(cluster) == before
        await topic(cluster, "clicks", 4)
        await cluster.settle(2)
        clicks = {key: leader for key, leader in (await leaders(cluster)).items() if key[0] == "clicks"}
        assert Counter(clicks.values()) == {"a": 2, "b": 2}

        again = await cluster.join("c")
        await cluster.settle()
        assert {key: owner for key, owner in (await owners(cluster)).items() if key[0] == "orders"} == before
        assert Counter(owner for key, owner in before.items() if key in before)["c"] == 2
        assert {partition.partition for partition in again.partitions.held} >= {
            number for (_, number), owner in before.items() if owner == "c"
        }


async def test_a_dead_agents_disk_is_waited_for_while_some_of_its_leases_have_run_out_and_others_have_not() -> None:
    async with a_cluster() as cluster:
        a, b, c = [await cluster.join(name) for name in "abc"]
        for agent in (a, b, c):
            agent.partitions.in_local_wal = True
        await topic(cluster, "first", 3)
        await cluster.settle(2)
        cluster.clock.pass_time(TTL_MS // 2)
        await topic(cluster, "later", 6)
        await cluster.settle(2)
        before = await owners(cluster)

        cluster.agents.remove(c)
        for _ in range(2):
            for agent in (a, b):
                await agent.membership.beat()
                await agent.keep_leases()
            cluster.clock.pass_time(TTL_MS // 4 + 1)
        await cluster.settle(2)

        led = {key for key, leader in (await leaders(cluster)).items() if leader == "c"}
        assert {name for name, _ in led} == {"later"}, "one of its leases ran out, and others did not"
        assert await owners(cluster) == before


async def test_what_is_pinned_counts_for_nobody_and_without_the_pin_has_an_owner_again() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "ab"]
        pinned = await topic(cluster, "pinned", 4)
        partitions = [TopicPartition(pinned.topic_id, number) for number in range(4)]
        for partition in partitions:
            await cluster.store.pin_partition(partition, "a")
        await topic(cluster, "orders", 4)
        await cluster.settle(2)
        led = await leaders(cluster)
        assert Counter(led[key] for key in led if key[0] == "orders") == {"a": 2, "b": 2}
        assert {led[key] for key in led if key[0] == "pinned"} == {"a"}

        for partition in partitions:
            await cluster.store.pin_partition(partition, "")
        moved = await moved_by(cluster, *agents)
        assert {name for name, _ in moved} == {"pinned"}
        assert Counter((await leaders(cluster)).values()) == {"a": 4, "b": 4}


async def test_to_pin_a_partition_may_move_one_more_of_its_topic_and_nothing_of_others() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        orders = await topic(cluster, "orders", 7)
        await topic(cluster, "clicks", 7)
        await cluster.settle(2)
        led = {number: leader for (name, number), leader in (await leaders(cluster)).items() if name == "orders"}
        (most, _), (pinned_to, _), (loser, _) = Counter(led.values()).most_common()
        number = next(number for number, leader in led.items() if leader == loser)

        await cluster.store.pin_partition(TopicPartition(orders.topic_id, number), pinned_to)
        moved = await moved_by(cluster, *agents)
        (other,) = moved - {("orders", number)}
        assert other in {("orders", number) for number, leader in led.items() if leader == most}
        assert (await leaders(cluster))[other] == loser


async def test_groups_are_counted_each_on_its_own_and_zones_within_them() -> None:
    async with a_cluster() as cluster:
        await cluster.join("a", zone="x")
        await cluster.join("b", zone="y")
        await cluster.join("c", group="batch")
        await cluster.join("d", group="batch")
        await topic(cluster, "here", 4, zone="x")
        await topic(cluster, "anywhere", 4)
        await topic(cluster, "nightly", 6, agent_group="batch")
        await cluster.settle(3)

        led = await leaders(cluster)
        assert Counter(leader for (name, _), leader in led.items() if name == "nightly") == {"c": 3, "d": 3}
        assert Counter(leader for (name, _), leader in led.items() if name == "here") == {"a": 4}
        assert Counter(leader for (name, _), leader in led.items() if name == "anywhere") == {"a": 2, "b": 2}


async def test_what_others_can_no_longer_lead_is_given_out_anew() -> None:
    async with a_cluster() as cluster:
        for name in "abc":
            await cluster.join(name, zone="x" if name == "a" else "y")
        created = await topic(cluster, "orders", 6)
        await cluster.settle(2)

        await cluster.store.set_topic_config(created, {"streamhouse.zone": "y"})
        await cluster.settle()

        assert Counter((await leaders(cluster)).values()) == {"b": 3, "c": 3}


async def test_without_an_agent_nobody_decides_and_nobody_forgets() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await topic(cluster, "orders", 2)
        await a.look()
        decided = await cluster.store.load_owner_decision()

        await cluster.store.drain_agent("a")
        await a.look()
        cluster.clock.pass_time(LIVENESS_MS + 1)
        assert await cluster.store.load_owner_decision() == decided


async def test_much_is_decided_on_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUICK", 5)
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "ab"]
        await topic(cluster, "orders", 6)
        for agent in agents:
            await agent.look()
        assert Counter((await leaders(cluster)).values()) == {"a": 3, "b": 3}


async def test_a_topic_that_is_deleted_while_its_owners_are_stored_ends_no_round() -> None:
    async with a_cluster() as cluster:
        agent = await cluster.join("a")
        doomed = await topic(cluster, "doomed", 2)
        await topic(cluster, "stays", 2)
        decide = cluster.store.decide_owners

        async def decide_slowly(
            version: int, agents: Collection[Candidate], owners: Mapping[TopicPartition, str]
        ) -> bool:
            decided = await decide(version, agents, owners)
            await cluster.store.delete_topic(doomed.topic_id)
            await agent.view.refresh()  # as who forwards a request does, beside the round
            return decided

        cluster.store.decide_owners = decide_slowly  # type: ignore[method-assign]
        await agent.look()
        assert {name for name, _ in await leaders(cluster)} == {"stays"}
