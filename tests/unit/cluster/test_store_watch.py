"""Agents that lose their way to the object store say so, and what they cannot store goes to others that can."""

from __future__ import annotations

import pytest

from cluster_parts.agents import TTL_MS, Agent, Cluster, a_cluster
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.format.object_keys import probe_key
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.objects.faulty import Operation

ALL = set(range(12))


async def look(cluster: Cluster, rounds: int = 3) -> None:
    """Everybody looks at the store, and then at who should lead what, again and again."""
    for _ in range(rounds):
        for agent in cluster.agents:
            await agent.look()
            await agent.store_watch.look()
    await cluster.settle()


def cut_off(*agents: Agent) -> None:
    """Nothing that they append is stored, and nothing else either."""
    for agent in agents:
        agent.overdue_ms = 10_000
        for operation in (Operation.CREATE, Operation.DELETE):
            agent.objects.fail(operation, times=None)


def mend(*agents: Agent) -> None:
    for agent in agents:
        agent.overdue_ms = 0
        agent.objects.heal()


async def access(cluster: Cluster) -> dict[str, StoreAccess]:
    return {row.info.agent_id: row.store_access for row in await cluster.store.list_agents()}


async def three(cluster: Cluster, durability: str = "object") -> list[Agent]:
    agents = [await cluster.join(name) for name in "abc"]
    await cluster.topic(durability=durability)
    await cluster.settle()
    return agents


async def test_while_all_is_well_nothing_is_asked_of_the_store() -> None:
    async with a_cluster() as cluster:
        agents = await three(cluster)

        await look(cluster)

        assert not any(agent.objects.calls for agent in agents)
        assert set((await access(cluster)).values()) == {StoreAccess.USUAL}


async def test_what_an_agent_cannot_store_goes_to_those_that_can() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        before = {agent.agent_id: agent.numbers for agent in (a, b, c)}
        cut_off(a)

        await look(cluster)

        assert (await access(cluster))["a"] is StoreAccess.STALLED
        assert a.numbers == set()
        assert b.numbers | c.numbers == ALL
        assert b.numbers >= before["b"]
        assert c.numbers >= before["c"]
        assert await cluster.store.list_transfers() == []


async def test_what_is_durable_on_the_agents_own_disk_stays() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster, "wal")
        before = [agent.numbers for agent in (a, b, c)]
        cut_off(a)

        await look(cluster)

        assert (await access(cluster))["a"] is StoreAccess.STALLED
        assert [agent.numbers for agent in (a, b, c)] == before


async def test_who_cannot_write_gets_nothing_though_it_has_nothing_to_store() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        before = b.numbers
        cut_off(a)
        b.objects.fail(Operation.CREATE, times=None)

        await look(cluster)

        assert (await access(cluster))["b"] is StoreAccess.USUAL
        assert b.numbers == before
        assert a.numbers == set()
        assert c.numbers == ALL - before


async def epochs(cluster: Cluster) -> dict[int, int]:
    return {placement.partition.partition: placement.epoch for placement in await cluster.placements()}


async def dies(cluster: Cluster, dead: Agent) -> set[int]:
    """What it led is nobody's now."""
    left = dead.numbers
    assert left
    cluster.agents.remove(dead)
    cluster.clock.pass_time(TTL_MS + 1)
    for agent in cluster.agents:
        await agent.membership.beat()
        await agent.keep_leases()
    return left


async def test_who_is_stalled_takes_up_nothing_that_is_in_the_store_alone() -> None:
    """Also nothing that the ring gives it, and of which it has the lease: that runs out."""
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        cut_off(a, c)
        await look(cluster)
        a.overdue_ms = c.overdue_ms = 0
        assert set((await access(cluster)).values()) == {StoreAccess.STALLED, StoreAccess.PROVEN}
        assert b.numbers == ALL
        await dies(cluster, b)
        some = [placement.partition for placement in await cluster.placements()][:3]
        await cluster.store.acquire_leases("a", some, TTL_MS)
        before = await epochs(cluster)

        await look(cluster)
        assert (a.numbers, c.numbers) == (set(), set())
        assert await epochs(cluster) == before, "while nobody reaches the store nobody moves"

        mend(c)
        await look(cluster)
        assert (a.numbers, c.numbers) == (set(), ALL - {partition.partition for partition in some})
        cluster.clock.pass_time(TTL_MS + 1)
        for agent in cluster.agents:
            await agent.membership.beat()
            await agent.keep_leases()
        await look(cluster)
        assert c.numbers == ALL


async def test_who_is_stalled_begins_what_it_has_read() -> None:
    """Else it would renew leases of what it neither leads nor can let go."""
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        cut_off(a, c)
        await look(cluster)
        await dies(cluster, b)
        read = [placement.partition for placement in await cluster.placements()][:3]
        await cluster.store.acquire_leases("a", read, TTL_MS)
        a.partitions.not_begun = set(read)

        await look(cluster)

        assert a.numbers == {partition.partition for partition in read}


async def test_who_is_stalled_takes_up_what_is_on_its_own_disk() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster, "wal")
        cut_off(a)
        await look(cluster)
        await dies(cluster, b)

        await look(cluster)

        assert (await access(cluster))["a"] is StoreAccess.STALLED
        assert a.numbers | c.numbers == ALL


async def test_who_cannot_read_does_not_reach_the_store_though_it_can_write() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        a.overdue_ms = 10_000
        a.objects.fail(Operation.READ, times=None)

        await look(cluster)

        assert (await access(cluster))["a"] is StoreAccess.STALLED
        assert (a.numbers, b.numbers | c.numbers) == (set(), ALL)


async def test_what_is_found_is_heard_here_whether_or_not_the_others_can_be_told() -> None:
    async with a_cluster() as cluster:
        a, _, _ = await three(cluster)
        cut_off(a)
        cluster.store.fail("say_store_access")
        with pytest.raises(MetadataUnavailable):
            await a.store_watch.look()
        assert a.known == [StoreAccess.STALLED]

        await look(cluster)
        mend(a)
        await look(cluster)

        assert a.known == [StoreAccess.STALLED, StoreAccess.RECOVERING]


async def test_while_nobody_can_write_nobody_moves() -> None:
    async with a_cluster() as cluster:
        agents = await three(cluster)
        before = [agent.numbers for agent in agents]
        cut_off(*agents)

        await look(cluster)

        assert set((await access(cluster)).values()) == {StoreAccess.STALLED}
        assert [agent.numbers for agent in agents] == before
        mend(*agents)
        await look(cluster)
        assert [agent.numbers for agent in agents] == before


async def test_a_store_that_has_come_back_for_all_at_once_moves_nothing() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        before = [agent.numbers for agent in (a, b, c)]
        cut_off(a)
        await a.store_watch.look()
        for other in (b, c):
            await other.look()
            await other.store_watch.look()
        assert (await access(cluster))["b"] is StoreAccess.PROVEN
        mend(a)

        await cluster.settle()

        assert [agent.numbers for agent in (a, b, c)] == before


async def test_what_was_given_away_comes_back_when_the_store_has_been_there_for_a_while() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        before = [agent.numbers for agent in (a, b, c)]
        cut_off(a)
        await look(cluster)
        mend(a)

        await look(cluster)
        assert (await access(cluster))["a"] is StoreAccess.RECOVERING
        assert a.numbers == set()

        cluster.clock.pass_time(TTL_MS - 1)
        for agent in cluster.agents:
            await agent.membership.beat()
            await agent.keep_leases()
        cluster.clock.pass_time(2)
        await look(cluster)

        assert set((await access(cluster)).values()) == {StoreAccess.USUAL}
        assert [agent.numbers for agent in (a, b, c)] == before


async def test_a_slow_store_that_takes_a_probe_is_no_reason_to_move() -> None:
    async with a_cluster() as cluster:
        a, b, c = await three(cluster)
        before = [agent.numbers for agent in (a, b, c)]
        a.overdue_ms = 10_000

        await look(cluster)

        assert set((await access(cluster)).values()) == {StoreAccess.USUAL}
        assert [agent.numbers for agent in (a, b, c)] == before


async def test_an_agent_alone_has_nobody_to_tell() -> None:
    async with a_cluster() as cluster:
        agent = await cluster.join("a")
        await cluster.topic(durability="object")
        cut_off(agent)

        await look(cluster)

        assert agent.numbers == ALL
        assert not agent.objects.calls


async def test_there_is_at_most_one_probe_of_each_agent_and_none_when_all_is_well_again() -> None:
    async with a_cluster() as cluster:
        a, _, _ = await three(cluster)
        cut_off(a)
        await look(cluster)
        probes = [item.key async for item in cluster.objects.list("")]
        assert probes == [probe_key("b"), probe_key("c")]

        mend(a)
        await look(cluster)

        assert [item.key async for item in cluster.objects.list("")] == [probe_key("a")]
        cluster.clock.pass_time(TTL_MS)
        for agent in cluster.agents:
            await agent.membership.beat()
        await look(cluster)
        assert [item.key async for item in cluster.objects.list("")] == []


async def test_what_could_not_be_said_is_said_again() -> None:
    async with a_cluster() as cluster:
        a, _, _ = await three(cluster)
        cut_off(a)
        cluster.store.fail("say_store_access")
        try:
            await a.store_watch.look()
        except MetadataUnavailable:
            pass
        assert (await access(cluster))["a"] is StoreAccess.USUAL

        await a.store_watch.look()

        assert (await access(cluster))["a"] is StoreAccess.STALLED


async def test_an_agent_that_was_registered_anew_says_it_again() -> None:
    async with a_cluster() as cluster:
        a, _, _ = await three(cluster)
        cut_off(a)
        await look(cluster)
        await a.membership.register()
        assert (await access(cluster))["a"] is StoreAccess.USUAL

        await look(cluster)

        assert (await access(cluster))["a"] is StoreAccess.STALLED
