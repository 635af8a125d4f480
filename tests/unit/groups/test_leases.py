"""The leases of a coordinator's shards over time: renewed, lost to others, or run out and taken again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from group_parts.coordinators import (
    ALL_SHARDS,
    GROUP,
    NOBODY,
    SESSION_MS,
    TTL_MS,
    at,
    coordinating,
    joining,
    new_partition,
    only_member,
    park,
)
from group_parts.store import WatchedStore, watched_store
from log_parts.waiting import HUNG_SECONDS, until
from streamhouse.core.groups.outcome import GroupError
from streamhouse.core.placement.shards import shard_of
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.testing.clock import MovableClock

SHARD = shard_of(GROUP)


@asynccontextmanager
async def renewing(
    store: WatchedStore, clock: MovableClock, agent_id: str = "agent", **options: Any
) -> AsyncIterator[GroupCoordinator]:
    """One that renews every few milliseconds."""
    async with coordinating(store, clock, agent_id, renewal_ms=5, **options) as coordinator:
        await coordinator.start()
        yield coordinator


async def until_all_held(coordinator: GroupCoordinator) -> None:
    await until(lambda: set(coordinator.held_shards) == set(ALL_SHARDS), "every shard to be held")


async def test_leases_that_are_renewed_do_not_run_out() -> None:
    clock = MovableClock()
    async with (
        watched_store(clock) as store,
        renewing(store, clock, "a") as ours,
        coordinating(store, clock, "b", shards=[]) as theirs,
    ):
        for _ in range(5):
            clock.pass_time(TTL_MS // 2)
            store.finished.clear()
            # The first of them may have begun before.
            await until(lambda: store.finished["renew_shards"] >= 2, "the leases to be renewed")
        assert set(ours.held_shards) == set(ALL_SHARDS)
        await theirs.acquire_shards(ALL_SHARDS)
        assert not theirs.held_shards


@pytest.mark.parametrize("held_up", ["acquire_shards", "release_shards"])
async def test_leases_are_renewed_while_others_are_acquired_or_released(held_up: str) -> None:
    clock = MovableClock()
    kept, other = ALL_SHARDS[:-1], ALL_SHARDS[-1]
    async with watched_store(clock) as store, renewing(store, clock, shards=kept) as coordinator:
        if held_up == "release_shards":
            await coordinator.acquire_shards([other])
        store.hold(held_up)
        change = coordinator.acquire_shards if held_up == "acquire_shards" else coordinator.release_shards
        changing = asyncio.ensure_future(change([other]))
        await until(lambda: store.waiting[held_up], f"{held_up} to be asked for")

        try:
            for _ in range(5):
                clock.pass_time(TTL_MS // 2)
                store.finished.clear()
                await until(lambda: store.finished["renew_shards"] >= 2, "the leases to be renewed")
            assert set(coordinator.held_shards) == set(kept)
        finally:
            store.let_through(held_up)
            await asyncio.wait_for(changing, HUNG_SECONDS)


async def test_a_shard_that_is_taken_again_while_it_is_let_go_is_let_go() -> None:
    """With the epoch that it has by then, or nobody else could have it until its lease runs out."""
    clock = MovableClock()
    async with (
        watched_store(clock) as store,
        renewing(store, clock, "a") as ours,
        coordinating(store, clock, "b", shards=[]) as theirs,
    ):
        store.hold_answers("acquire_shards")
        clock.pass_time(TTL_MS)
        await until(lambda: store.waiting["acquire_shards"], "the leases to be taken again")
        letting_go = asyncio.ensure_future(ours.release_shards([SHARD]))
        await until(lambda: SHARD not in ours._coordination._held, "the shard to be let go here")
        store.let_through("acquire_shards")
        await asyncio.wait_for(letting_go, HUNG_SECONDS)

        await theirs.acquire_shards([SHARD])
        assert list(theirs.held_shards) == [SHARD]


async def test_after_the_database_was_away_for_long_the_shards_are_taken_and_read_again() -> None:
    clock = MovableClock()
    losses: list[None] = []
    async with watched_store(clock) as store, renewing(store, clock, lost=lambda: losses.append(None)) as coordinator:
        partition = await new_partition(store)
        claim = await only_member(coordinator)
        parked = await park(coordinator, 2)
        store.is_away = True
        clock.pass_time(max(TTL_MS, SESSION_MS))
        assert await coordinator.heartbeat(GROUP, claim) is GroupError.NOT_COORDINATOR
        replies = await asyncio.wait_for(asyncio.gather(*parked), HUNG_SECONDS)
        assert [reply.error for reply in replies] == [GroupError.NOT_COORDINATOR] * 2
        assert await coordinator.commit(GROUP, claim, {partition: at(1)}) is GroupError.NOT_COORDINATOR

        store.is_away = False
        await until_all_held(coordinator)

        assert await coordinator.heartbeat(GROUP, claim) is None, "its session has begun anew"
        assert await coordinator.commit(GROUP, claim, {partition: at(2)}) == {partition: None}
        assert losses == []


async def test_what_another_coordinator_did_meanwhile_is_what_is_read_again() -> None:
    clock = MovableClock()
    async with watched_store(clock) as store, renewing(store, clock, "a") as ours:
        earlier = await only_member(ours)
        store.hold("renew_shards")
        await until(lambda: store.waiting["renew_shards"], "a renewal")
        clock.pass_time(TTL_MS)
        async with coordinating(store, clock, "b") as theirs:
            joined = await theirs.join(GROUP, joining(earlier.member_id))
        store.let_through("renew_shards")
        await until_all_held(ours)

        described = ours.describe(GROUP)
        assert described is not None
        assert not isinstance(described, GroupError)
        assert [member.member_id for member in described.members] == [joined.member_id]
        assert await ours.heartbeat(GROUP, earlier) is GroupError.ILLEGAL_GENERATION


async def test_a_shard_that_another_took_is_let_go_and_reported() -> None:
    clock = MovableClock()
    losses: list[None] = []
    async with (
        watched_store(clock) as store,
        renewing(store, clock, "a", lost=lambda: losses.append(None)) as ours,
        coordinating(store, clock, "b", shards=[]) as theirs,
    ):
        partition = await new_partition(store)
        claim = await only_member(ours)
        (parked,) = await park(ours, 1)
        store.hold("renew_shards")
        await until(lambda: store.waiting["renew_shards"], "a renewal")
        clock.pass_time(TTL_MS)
        await theirs.acquire_shards([SHARD])
        store.let_through("renew_shards")

        await until(lambda: losses, "the loss to be reported")

        assert (await asyncio.wait_for(parked, HUNG_SECONDS)).error is GroupError.NOT_COORDINATOR
        assert await ours.commit(GROUP, NOBODY, {partition: at(1)}) is GroupError.NOT_COORDINATOR
        assert await theirs.commit(GROUP, claim, {partition: at(2)}) == {partition: None}
        await until(lambda: set(ours.held_shards) == set(ALL_SHARDS) - {SHARD}, "the others to be taken again")
        assert losses == [None]


async def test_a_shard_that_is_let_go_during_a_renewal_stays_let_go() -> None:
    clock = MovableClock()
    async with (
        watched_store(clock) as store,
        renewing(store, clock, "a") as ours,
        coordinating(store, clock, "b", shards=[]) as theirs,
    ):
        # The lease has run out, so that the renewal will want to take it again.
        store.hold("renew_shards")
        await until(lambda: store.waiting["renew_shards"], "a renewal")
        clock.pass_time(TTL_MS)
        store.hold("acquire_shards")
        store.let_through("renew_shards")
        await until(lambda: store.waiting["acquire_shards"], "it to be taken again")
        letting_go = asyncio.ensure_future(ours.release_shards([SHARD]))
        await asyncio.sleep(0)
        store.let_through("acquire_shards")
        await letting_go

        await theirs.acquire_shards([SHARD])
        assert set(theirs.held_shards) == {SHARD}
        await until(lambda: set(ours.held_shards) == set(ALL_SHARDS) - {SHARD}, "the others to be held")


async def test_a_shard_that_could_not_be_read_again_is_read_at_a_later_renewal() -> None:
    clock = MovableClock()
    async with watched_store(clock) as store, renewing(store, clock) as coordinator:
        claim = await only_member(coordinator)
        store.hold("renew_shards")
        await until(lambda: store.waiting["renew_shards"], "a renewal")
        clock.pass_time(TTL_MS)
        store.hold("load_groups")
        store.let_through("renew_shards")
        await until(lambda: store.waiting["load_groups"], "the groups to be read")
        assert await coordinator.heartbeat(GROUP, claim) is GroupError.COORDINATOR_LOAD_IN_PROGRESS
        store.is_away = True
        store.let_through("load_groups")
        await until(lambda: not store.waiting["load_groups"], "that to fail")
        store.is_away = False

        await until_all_held(coordinator)
        assert await coordinator.heartbeat(GROUP, claim) is None


async def test_what_was_read_before_the_lease_was_lost_is_read_again() -> None:
    clock = MovableClock()
    async with watched_store(clock) as store, renewing(store, clock, "a", shards=[]) as ours:
        async with coordinating(store, clock, "b") as theirs:
            earlier = await only_member(theirs)
        store.hold_answers("load_groups")
        taking = asyncio.ensure_future(ours.acquire_shards([SHARD]))
        await until(lambda: store.waiting["load_groups"], "the groups to be read")
        store.hold("renew_shards")
        await until(lambda: store.waiting["renew_shards"], "a renewal")
        clock.pass_time(TTL_MS)
        (lease,) = await store.real.acquire_shards("b", [SHARD], TTL_MS)
        assert lease is not None
        await store.real.delete_group(lease, GROUP)
        await store.real.release_shards("b", [lease])
        store.finished.clear()
        store.let_through("renew_shards")
        await until(lambda: store.finished["acquire_shards"], "the shard to be taken again")
        store.let_through("load_groups")
        await taking

        assert set(ours.held_shards) == {SHARD}
        assert await ours.heartbeat(GROUP, earlier) is GroupError.UNKNOWN_MEMBER_ID
