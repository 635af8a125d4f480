"""The owner of a group: one request at a time, stored before it is answered, and nobody left waiting."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from group_parts.coordinators import (
    GROUP,
    NOBODY,
    at,
    claim_of,
    coordinating,
    joining,
    new_partition,
    only_member,
    park,
)
from group_parts.store import watched_store
from log_parts.waiting import HUNG_SECONDS, until
from streamhouse.core.groups.classic import ClassicGroup
from streamhouse.core.groups.classic_messages import JoinReply, MemberClaim
from streamhouse.core.groups.outcome import GroupError
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.runtime.clock import SystemClock

CLOCK = SystemClock()
BUG = ZeroDivisionError("nobody expected it")
PROBLEMS = [MetadataUnavailable("away"), BUG]
IMPATIENT = replace(joining(), new_member_id="a", rebalance_timeout_ms=200)
"""Who does not wait long for others to join again."""


async def test_a_generation_is_stored_before_anybody_hears_of_it() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        store.hold("save_group")
        waiting = asyncio.ensure_future(coordinator.join(GROUP, joining()))
        await until(lambda: store.waiting["save_group"], "the generation to be stored")
        assert not waiting.done()
        assert store.saved == []

        store.let_through("save_group")
        reply = await asyncio.wait_for(waiting, HUNG_SECONDS)

        assert reply.error is None
        assert store.saved == [reply.generation]


async def test_what_could_not_be_stored_has_not_happened() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        store.problems["save_group"] = MetadataUnavailable("away")
        with pytest.raises(MetadataUnavailable):
            await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)
        store.problems.clear()

        reply = await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)

        assert isinstance(reply, JoinReply)
        assert (reply.error, reply.generation) == (None, 1)


@pytest.mark.parametrize("problem", PROBLEMS)
async def test_all_who_waited_for_what_could_not_be_stored_hear_of_it(problem: Exception) -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        first = await coordinator.join(GROUP, joining())
        parked = await park(coordinator, 2)
        store.problems["save_group"] = problem

        with pytest.raises(type(problem)):
            await coordinator.join(GROUP, joining(first.member_id))

        replies = await asyncio.wait_for(asyncio.gather(*parked), HUNG_SECONDS)
        assert [reply.error for reply in replies] == [GroupError.NOT_COORDINATOR] * 2


async def test_a_group_that_could_not_be_stored_is_what_is_stored_once_that_can_be_read() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        claim = await only_member(coordinator)
        store.is_away = True
        with pytest.raises(MetadataUnavailable):
            await coordinator.join(GROUP, joining(claim.member_id))
        with pytest.raises(MetadataUnavailable):
            await coordinator.heartbeat(GROUP, claim)
        assert coordinator.describe(GROUP) is GroupError.COORDINATOR_NOT_AVAILABLE
        store.is_away = False

        assert await coordinator.heartbeat(GROUP, claim) is None


@pytest.mark.parametrize("problem", PROBLEMS)
async def test_a_group_goes_on_after_a_rebalance_that_could_not_be_stored(problem: Exception) -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        await coordinator.join(GROUP, IMPATIENT)
        store.problems["save_group"] = problem
        reply = await asyncio.wait_for(coordinator.join(GROUP, replace(IMPATIENT, new_member_id="b")), HUNG_SECONDS)
        assert reply.error is GroupError.NOT_COORDINATOR
        store.problems.clear()

        reply = await asyncio.wait_for(coordinator.join(GROUP, replace(IMPATIENT, new_member_id="c")), HUNG_SECONDS)

        assert reply.error is None


@pytest.mark.parametrize("broken", ["tick", "next_deadline"])
async def test_a_group_whose_decisions_fail_leaves_nobody_waiting_and_is_read_again(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise BUG

    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        first = await coordinator.join(GROUP, IMPATIENT)
        with monkeypatch.context() as patched:
            patched.setattr(ClassicGroup, broken, fail)
            patched.setattr(ClassicGroup, "unload", fail)
            joins = coordinator.join(GROUP, replace(IMPATIENT, new_member_id="b"))
            reply = await asyncio.wait_for(joins, HUNG_SECONDS)
            assert reply.error is GroupError.NOT_COORDINATOR

        assert await asyncio.wait_for(coordinator.heartbeat(GROUP, claim_of(first)), HUNG_SECONDS) is None


@pytest.mark.parametrize("problem", PROBLEMS)
async def test_a_group_whose_deletion_could_not_be_stored_is_still_there(problem: Exception) -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        claim = await only_member(coordinator)
        await coordinator.disconnect(GROUP, claim.member_id)
        store.problems["delete_group"] = problem
        with pytest.raises(type(problem)):
            await coordinator.delete(GROUP)
        store.problems.clear()

        reply = await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)

        assert reply.error is None
        assert reply.generation > claim.generation


async def test_members_and_generation_come_back_with_the_next_coordinator() -> None:
    async with watched_store(CLOCK) as store:
        async with coordinating(store, CLOCK) as coordinator:
            reply = await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)
        async with coordinating(store, CLOCK) as successor:
            refusal = await successor.heartbeat(GROUP, claim_of(reply))
            stranger = await successor.heartbeat(GROUP, MemberClaim(member_id="x", generation=reply.generation))

    assert refusal is None
    assert stranger is GroupError.UNKNOWN_MEMBER_ID


async def test_a_commit_after_a_new_process_of_the_same_agent_took_over_changes_nothing() -> None:
    async with (
        watched_store(CLOCK) as store,
        coordinating(store, CLOCK) as deposed,
        coordinating(store, CLOCK) as successor,
    ):
        partition = await new_partition(store)
        assert await deposed.commit(GROUP, NOBODY, {partition: at(5)}) is GroupError.NOT_COORDINATOR
        assert await store.fetch_group_offsets(GROUP) == {}
        assert await successor.commit(GROUP, NOBODY, {partition: at(5)}) == {partition: None}


async def test_strangers_do_not_make_groups() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        for number in range(100):
            claim = MemberClaim(member_id="m", generation=1)
            assert await coordinator.heartbeat(f"group-{number}", claim) is GroupError.UNKNOWN_MEMBER_ID
        assert coordinator.all_groups() == []


async def test_a_stop_answers_whoever_still_waits() -> None:
    async with watched_store(CLOCK) as store:
        async with coordinating(store, CLOCK) as coordinator:
            await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)
            (second,) = await park(coordinator, 1)
        reply = await asyncio.wait_for(second, HUNG_SECONDS)
        assert reply.error is GroupError.NOT_COORDINATOR


async def test_a_member_whose_connection_ended_is_gone_before_anybody_else_comes() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK) as coordinator:
        first = await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)
        assert await coordinator.disconnect(GROUP, first.member_id) is None

        second = await asyncio.wait_for(coordinator.join(GROUP, joining()), HUNG_SECONDS)

        assert [member.member_id for member in second.members] == [second.member_id]
        assert second.generation > first.generation
        assert await coordinator.heartbeat(GROUP, claim_of(first)) is GroupError.UNKNOWN_MEMBER_ID
