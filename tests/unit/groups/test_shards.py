"""Coordinators that share the shards of groups: each serves its own, and a shard moves with all that is in it."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from group_parts.coordinators import (
    ALL_SHARDS,
    GROUP,
    NOBODY,
    TTL_MS,
    at,
    claim_of,
    coordinating,
    joining,
    new_coordinator,
    new_partition,
    only_member,
    park,
)
from group_parts.store import watched_store
from log_parts.waiting import HUNG_SECONDS, until
from services.clock import ManualClock
from streamhouse.core.groups.classic_messages import LeavingMember, MemberClaim, SyncRequest
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.classic_snapshot import GroupDescription
from streamhouse.core.groups.consumer_heartbeat import HeartbeatReply, HeartbeatRequest
from streamhouse.core.groups.consumer_target import TopicShape
from streamhouse.core.groups.outcome import GroupError
from streamhouse.core.placement.shards import shard_of
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.metadata.groups import GroupRow
from streamhouse.model.errors import CorruptData, MetadataUnavailable

SHARD = shard_of(GROUP)
EVEN, ODD = ALL_SHARDS[::2], ALL_SHARDS[1::2]


async def refusals(coordinator: GroupCoordinator, group_id: str) -> set[object]:
    """What every request about a group is refused with, by members and others, that wish to change it or to see it."""
    claim = MemberClaim(member_id="m", generation=1)
    described = coordinator.describe(group_id)
    return {
        (await coordinator.join(group_id, joining())).error,
        (await coordinator.sync(group_id, SyncRequest(claim=claim))).error,
        (await coordinator.leave(group_id, [LeavingMember(member_id="m")])).error,
        await coordinator.heartbeat(group_id, claim),
        await coordinator.disconnect(group_id, "m"),
        await coordinator.consumer_heartbeat(group_id, HeartbeatRequest(member_id="m", member_epoch=0)),
        await coordinator.consumer_heartbeat(group_id, HeartbeatRequest(member_id="m", member_epoch=1)),
        repr(await coordinator.commit(group_id, NOBODY, {})),
        repr(await coordinator.committed(group_id, None, -1)),
        repr(await coordinator.delete_offsets(group_id, lambda _: [])),
        described if isinstance(described, GroupError) else type(described),
        await coordinator.delete(group_id),
    }


def only(error: GroupError) -> set[object]:
    return {error, repr(error)}


async def test_each_serves_the_groups_of_its_own_shards() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a", shards=EVEN) as ours,
        coordinating(store, clock, "b", shards=ODD) as theirs,
    ):
        partition = await new_partition(store)
        assert (set(ours.held_shards), set(theirs.held_shards)) == (set(EVEN), set(ODD))
        names = [f"group-{number}" for number in range(40)]
        for name in names:
            here, there = (ours, theirs) if shard_of(name) in EVEN else (theirs, ours)
            assert await here.commit(name, NOBODY, {partition: at(7)}) == {partition: None}
            assert await here.committed(name, None, -1) == await store.fetch_group_offsets(name) != {}
            assert await refusals(there, name) == only(GroupError.NOT_COORDINATOR)
        listed = [[group.group_id for group in one.all_groups()] for one in (ours, theirs)]  # type: ignore[union-attr]
        assert listed == [sorted(name for name in names if shard_of(name) in own) for own in (EVEN, ODD)]


async def test_shards_of_a_live_agent_are_passed_over() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a", shards=EVEN) as ours,
        coordinating(store, clock, "b", shards=ALL_SHARDS) as theirs,
    ):
        assert set(theirs.held_shards) == set(ODD)
        await theirs.acquire_shards(EVEN)
        assert (set(ours.held_shards), set(theirs.held_shards)) == (set(EVEN), set(ODD))


async def test_a_shard_that_is_held_is_not_taken_again() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock, shards=[SHARD]) as coordinator:
        claim = await only_member(coordinator)
        (parked,) = await park(coordinator, 1)
        await coordinator.acquire_shards([SHARD, SHARD])
        assert await coordinator.heartbeat(GROUP, claim) is GroupError.REBALANCE_IN_PROGRESS
        assert not parked.done()


async def test_members_of_a_shard_that_moves_go_on_without_a_rebalance() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a") as ours,
        coordinating(store, clock, "b") as theirs,
    ):
        partition = await new_partition(store)
        earlier = await only_member(ours)
        claim = claim_of(await ours.join(GROUP, joining(earlier.member_id)))
        await ours.sync(GROUP, SyncRequest(claim=claim, assignments={claim.member_id: b"share"}))
        assert claim.generation == earlier.generation + 1
        assert await ours.commit(GROUP, claim, {partition: at(3)}) == {partition: None}

        await ours.release_shards([SHARD])
        assert SHARD not in ours.held_shards
        assert await ours.heartbeat(GROUP, claim) is GroupError.NOT_COORDINATOR
        await theirs.acquire_shards([SHARD])
        assert set(theirs.held_shards) == {SHARD}

        assert await theirs.heartbeat(GROUP, claim) is None
        described = theirs.describe(GROUP)
        assert isinstance(described, GroupDescription)
        assert (described.state, described.generation) == (ClassicState.STABLE, claim.generation)
        assert [member.assignment for member in described.members] == [b"share"]
        assert await theirs.commit(GROUP, earlier, {partition: at(1)}) is GroupError.ILLEGAL_GENERATION
        offsets = await theirs.committed(GROUP, None, -1)
        assert isinstance(offsets, dict)
        assert offsets[partition].offset == 3
        assert await theirs.commit(GROUP, claim, {partition: at(4)}) == {partition: None}


async def test_a_member_of_the_newer_protocol_keeps_its_partitions_when_its_shard_moves() -> None:
    clock = ManualClock()
    topic = TopicShape(uuid4(), 2)
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a", topics=lambda: {"t": topic}) as ours,
        coordinating(store, clock, "b", topics=lambda: {"t": topic}) as theirs,
    ):
        asked = HeartbeatRequest(
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            subscribed_topic_names=("t",),
            owned=frozenset(),
        )
        joined = await ours.consumer_heartbeat(GROUP, asked)
        assert isinstance(joined, HeartbeatReply)
        assert joined.assignment is not None
        await ours.release_shards([SHARD])
        await theirs.acquire_shards([SHARD])

        owned = frozenset(joined.assignment)
        beat = HeartbeatRequest(member_id="m", member_epoch=joined.member_epoch, owned=owned)
        reply = await theirs.consumer_heartbeat(GROUP, beat)

        assert isinstance(reply, HeartbeatReply)
        assert (reply.member_epoch, reply.assignment) == (joined.member_epoch, None)
        assert len(owned) == topic.partition_count


async def test_members_that_wait_are_told_at_once_when_their_shard_is_let_go() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock) as coordinator:
        await only_member(coordinator)
        joins = await park(coordinator, 3)
        store.hold("release_shards")
        released = asyncio.ensure_future(coordinator.release_shards([SHARD]))
        replies = await asyncio.wait_for(asyncio.gather(*joins), HUNG_SECONDS)

        assert [reply.error for reply in replies] == [GroupError.NOT_COORDINATOR] * 3
        assert not released.done()
        store.let_through("release_shards")
        await released


async def test_members_that_wait_for_their_assignment_are_told_too() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock) as coordinator:
        first = await coordinator.join(GROUP, joining())
        (second,) = await park(coordinator, 1)
        await coordinator.join(GROUP, joining(first.member_id))
        follower = claim_of(await asyncio.wait_for(second, HUNG_SECONDS))
        sync = asyncio.ensure_future(coordinator.sync(GROUP, SyncRequest(claim=follower)))
        assert await coordinator.heartbeat(GROUP, follower) is None
        assert not sync.done()

        await coordinator.release_shards([SHARD])

        assert (await asyncio.wait_for(sync, HUNG_SECONDS)).error is GroupError.NOT_COORDINATOR


async def test_nobody_waits_on_when_a_shard_is_let_go_while_its_groups_are_being_stored() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock) as coordinator:
        claim = await only_member(coordinator)
        (parked,) = await park(coordinator, 1)
        store.hold("save_group")
        last = asyncio.ensure_future(coordinator.join(GROUP, joining(claim.member_id)))
        await until(lambda: store.waiting["save_group"], "the generation to be stored")
        queued = asyncio.ensure_future(coordinator.heartbeat(GROUP, claim))
        unserved = asyncio.ensure_future(coordinator.join(f"{GROUP}-new", joining()))
        await asyncio.sleep(0)

        await coordinator.release_shards(ALL_SHARDS)

        replies = await asyncio.wait_for(asyncio.gather(parked, last, unserved), HUNG_SECONDS)
        assert [reply.error for reply in replies] == [GroupError.NOT_COORDINATOR] * 3
        assert await asyncio.wait_for(queued, HUNG_SECONDS) is GroupError.NOT_COORDINATOR


async def test_what_is_let_go_is_free_at_once_and_letting_go_again_changes_nothing() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a") as ours,
        coordinating(store, clock, "b") as theirs,
    ):
        await ours.release_shards(EVEN)
        await theirs.acquire_shards(ALL_SHARDS)
        await ours.release_shards(EVEN)
        await ours.release_shards(EVEN)
        assert (set(ours.held_shards), set(theirs.held_shards)) == (set(ODD), set(EVEN))
        await ours.stop()
        assert await refusals(ours, GROUP) == only(GroupError.NOT_COORDINATOR)
        await theirs.acquire_shards(ALL_SHARDS)
        assert set(theirs.held_shards) == set(ALL_SHARDS)


async def test_shards_that_the_store_cannot_release_are_let_go_all_the_same() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a") as ours,
        coordinating(store, clock, "b") as theirs,
    ):
        store.is_away = True
        await ours.release_shards(ALL_SHARDS)
        store.is_away = False
        assert await refusals(ours, GROUP) == only(GroupError.NOT_COORDINATOR)
        await theirs.acquire_shards(ALL_SHARDS)
        assert not theirs.held_shards
        clock.advance(TTL_MS)
        await theirs.acquire_shards(ALL_SHARDS)
        assert set(theirs.held_shards) == set(ALL_SHARDS)


async def test_the_groups_of_a_killed_agent_go_on_elsewhere_when_its_leases_have_run_out() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock, "b", shards=[]) as theirs:
        killed = new_coordinator(store, clock, "a")
        await killed.acquire_shards(ALL_SHARDS)
        claim = await only_member(killed)
        await killed.abort()
        assert await killed.heartbeat(GROUP, claim) is GroupError.NOT_COORDINATOR

        clock.advance(TTL_MS - 1)
        await theirs.acquire_shards(ALL_SHARDS)
        assert not theirs.held_shards
        clock.advance(1)
        await theirs.acquire_shards(ALL_SHARDS)

        assert set(theirs.held_shards) == set(ALL_SHARDS)
        assert await theirs.heartbeat(GROUP, claim) is None


async def test_what_a_paused_agent_commits_after_another_took_its_shard_is_refused() -> None:
    clock, stopped_clock = ManualClock(), ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock, "b", shards=[]) as theirs:
        zombie = new_coordinator(store, stopped_clock, "a")
        await zombie.acquire_shards(ALL_SHARDS)
        partition = await new_partition(store)
        claim = await only_member(zombie)
        clock.advance(TTL_MS)
        await theirs.acquire_shards(ALL_SHARDS)
        assert await theirs.commit(GROUP, claim, {partition: at(9)}) == {partition: None}
        assert SHARD in zombie.held_shards, "it does not know"

        assert await zombie.commit(GROUP, claim, {partition: at(4)}) is GroupError.NOT_COORDINATOR

        assert (await store.fetch_group_offsets(GROUP))[partition].offset == 9
        assert SHARD not in zombie.held_shards, "now it does"
        assert await refusals(zombie, GROUP) == only(GroupError.NOT_COORDINATOR)
        await zombie.abort()


async def test_once_a_lease_may_have_run_out_nothing_is_served_from_memory() -> None:
    clock, wall_of_store = ManualClock(), ManualClock()
    async with watched_store(wall_of_store) as store, coordinating(store, clock) as coordinator:
        claim = await only_member(coordinator)
        clock.advance(TTL_MS * 9 // 10 - 1)
        assert await coordinator.heartbeat(GROUP, claim) is None
        clock.advance(1)
        store.is_away = True
        assert await refusals(coordinator, GROUP) == only(GroupError.NOT_COORDINATOR)
        assert coordinator.all_groups() == []
        assert not coordinator.held_shards


async def test_a_shard_is_served_only_when_its_groups_are_read() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store:
        async with coordinating(store, clock, "a") as ours:
            claim = await only_member(ours)
        async with coordinating(store, clock, "b", shards=[]) as theirs:
            store.hold("acquire_shards")
            taking = asyncio.ensure_future(theirs.acquire_shards([SHARD]))
            await until(lambda: store.waiting["acquire_shards"], "the lease to be asked for")
            assert await refusals(theirs, GROUP) == only(GroupError.NOT_COORDINATOR)
            store.hold("load_groups")
            store.let_through("acquire_shards")
            await until(lambda: store.waiting["load_groups"], "the groups to be read")

            assert await refusals(theirs, GROUP) == only(GroupError.COORDINATOR_LOAD_IN_PROGRESS)
            assert theirs.all_groups() is GroupError.COORDINATOR_LOAD_IN_PROGRESS
            assert not theirs.held_shards

            store.let_through("load_groups")
            await taking
            assert await theirs.heartbeat(GROUP, claim) is None


async def test_a_shard_that_is_let_go_while_it_is_being_read_is_not_served() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a", shards=[]) as ours,
        coordinating(store, clock, "b") as theirs,
    ):
        await only_member(theirs)
        await theirs.release_shards([SHARD])
        store.hold("load_groups")
        taking = asyncio.ensure_future(ours.acquire_shards([SHARD]))
        await until(lambda: store.waiting["load_groups"], "the groups to be read")
        await ours.release_shards([SHARD])
        store.let_through("load_groups")
        await taking
        assert not ours.held_shards
        assert not [task for task in asyncio.all_tasks() if task.get_name() == f"groups:{GROUP}"]
        assert await refusals(ours, GROUP) == only(GroupError.NOT_COORDINATOR)
        await theirs.acquire_shards([SHARD])
        assert SHARD in theirs.held_shards


async def test_a_shard_that_is_let_go_while_its_lease_is_being_taken_is_not_kept() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a", shards=[]) as ours,
        coordinating(store, clock, "b", shards=[]) as theirs,
    ):
        store.hold("acquire_shards")
        taking = asyncio.ensure_future(ours.acquire_shards([SHARD]))
        await until(lambda: store.waiting["acquire_shards"], "the lease to be asked for")
        letting_go = asyncio.ensure_future(ours.release_shards([SHARD]))
        await asyncio.sleep(0)
        store.let_through("acquire_shards")
        await asyncio.gather(taking, letting_go)
        assert not ours.held_shards
        await theirs.acquire_shards([SHARD])
        assert set(theirs.held_shards) == {SHARD}


async def test_a_shard_that_cannot_be_read_is_let_go_and_can_be_taken_later() -> None:
    clock = ManualClock()
    async with (
        watched_store(clock) as store,
        coordinating(store, clock, "a", shards=[]) as ours,
        coordinating(store, clock, "b", shards=[]) as theirs,
    ):
        store.problems["load_groups"] = MetadataUnavailable("away")
        with pytest.raises(MetadataUnavailable):
            await ours.acquire_shards(ALL_SHARDS)
        store.problems.clear()
        assert not ours.held_shards
        assert await refusals(ours, GROUP) == only(GroupError.NOT_COORDINATOR)

        await theirs.acquire_shards(EVEN)
        await ours.acquire_shards(ALL_SHARDS)
        assert (set(ours.held_shards), set(theirs.held_shards)) == (set(ODD), set(EVEN))


async def test_a_damaged_group_keeps_only_its_own_shard_from_being_served() -> None:
    clock = ManualClock()
    async with watched_store(clock) as store, coordinating(store, clock, "a", shards=[]) as coordinator:
        (lease,) = await store.acquire_shards("writer", [SHARD], TTL_MS)
        damaged = GroupRow(
            group_id=GROUP, protocol="classic", protocol_type="consumer", generation=1, state=b"{", empty_since_ms=None
        )
        await store.save_group(lease, damaged)
        await store.release_shards("writer", [lease])
        with pytest.raises(CorruptData):
            await coordinator.acquire_shards(ALL_SHARDS)
        assert set(coordinator.held_shards) == set(ALL_SHARDS) - {SHARD}
