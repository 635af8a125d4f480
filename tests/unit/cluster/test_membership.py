"""An agent's row: there from registration to the end, kept alive, put back when somebody removed it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from cluster_parts.agents import HEARTBEAT_MS, LIVENESS_MS, info
from log_parts.engines import FaultyMetadata
from log_parts.waiting import until
from services.clock import ManualClock
from streamhouse.cluster.membership import Membership
from streamhouse.metadata.cluster import AgentRow
from streamhouse.metadata.sqlite.database import Database
from streamhouse.model.errors import AlreadyExists, MetadataUnavailable


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock, event_loop_runner: asyncio.Runner) -> Iterator[FaultyMetadata]:
    database = Database(":memory:", clock)
    event_loop_runner.run(database.open())
    store = FaultyMetadata(database)
    yield store
    event_loop_runner.run(store.close())


def member(store: FaultyMetadata, clock: ManualClock, agent_id: str = "a", node_id: int = 0) -> Membership:
    return Membership(store=store, info=info(agent_id), node_id=node_id, clock=clock, heartbeat_ms=HEARTBEAT_MS)


async def row_of(store: FaultyMetadata) -> AgentRow:
    (row,) = await store.list_agents()
    return row


async def test_an_agent_keeps_its_node_id_when_it_comes_again(store: FaultyMetadata, clock: ManualClock) -> None:
    first = await member(store, clock).register()
    other = await member(store, clock, "b").register()
    await store.deregister_agent("a")

    assert (await member(store, clock).register()).node_id == first.node_id != other.node_id


async def test_a_node_id_that_another_agent_has_is_refused(store: FaultyMetadata, clock: ManualClock) -> None:
    await member(store, clock, "a", node_id=7).register()

    with pytest.raises(AlreadyExists):
        await member(store, clock, "b", node_id=7).register()


async def test_a_heartbeat_ends_the_silence(store: FaultyMetadata, clock: ManualClock) -> None:
    membership = member(store, clock)
    await membership.register()
    clock.advance(40_000)
    assert (await row_of(store)).silent_ms == 40_000

    await membership.beat()

    assert (await row_of(store)).silent_ms == 0


async def test_an_agent_that_was_removed_registers_again_under_its_node_id(
    store: FaultyMetadata, clock: ManualClock
) -> None:
    membership = member(store, clock, node_id=5)
    await membership.register()
    await store.deregister_agent("a")

    await membership.beat()

    row = await row_of(store)
    assert (row.node_id, row.is_draining) == (5, False)


async def test_an_agent_that_was_removed_while_it_drains_goes_on_draining(
    store: FaultyMetadata, clock: ManualClock
) -> None:
    membership = member(store, clock)
    await membership.register()
    await membership.drain()
    await store.deregister_agent("a")

    await membership.beat()

    assert (await row_of(store)).is_draining


async def test_heartbeats_come_often_enough_and_at_uneven_times(store: FaultyMetadata, clock: ManualClock) -> None:
    membership = member(store, clock)
    await membership.register()
    keeping = asyncio.ensure_future(membership.keep_alive())
    await until(lambda: store.calls.count("heartbeat_agent") >= 20, "twenty heartbeats")
    keeping.cancel()

    waits = clock.slept_ms[:20]
    assert all(HEARTBEAT_MS * 2 / 3 <= wait <= HEARTBEAT_MS * 4 / 3 for wait in waits)
    assert len(set(waits)) > 10


async def test_a_heartbeat_that_fails_is_sent_again_before_the_agent_is_taken_for_dead(
    store: FaultyMetadata, clock: ManualClock
) -> None:
    membership = member(store, clock)
    await membership.register()
    started_ms = clock.monotonic_ms()
    store.fail("heartbeat_agent", times=3)
    beaten_at_ms: list[int] = []
    beat = membership.beat

    async def noted_beat() -> None:
        await beat()
        beaten_at_ms.append(clock.monotonic_ms())

    membership.beat = noted_beat  # type: ignore[method-assign]
    keeping = asyncio.ensure_future(membership.keep_alive())

    await until(lambda: bool(beaten_at_ms), "the heartbeat is sent again")
    keeping.cancel()

    assert beaten_at_ms[0] - started_ms < LIVENESS_MS


async def test_an_agent_that_leaves_is_gone(store: FaultyMetadata, clock: ManualClock) -> None:
    membership = member(store, clock)
    await membership.register()

    await membership.deregister()

    assert await store.list_agents() == []


async def test_an_agent_that_cannot_say_goodbye_goes_all_the_same(store: FaultyMetadata, clock: ManualClock) -> None:
    membership = member(store, clock)
    await membership.register()
    store.fail("deregister_agent", error=MetadataUnavailable("away"))

    await membership.deregister()

    assert len(await store.list_agents()) == 1
