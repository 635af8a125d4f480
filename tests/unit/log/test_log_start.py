"""The start of a log: moved until the store has answered, whoever still waits for it."""

from __future__ import annotations

import asyncio

import pytest

from log_parts.batches import sent
from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from streamhouse.log import log_start
from streamhouse.model.errors import NotLeader, OutcomeUnknown

SOME = 5
"""Tries that fail, so that the waits between them are long enough to notice."""


async def led_log(running: Running) -> None:
    """Three segments of one record each."""
    await running.create()
    for _ in range(3):
        await running.produce(sent())
        await running.engine.flush()


async def until_moved(running: Running, log_start_offset: int) -> None:
    await until(lambda: running.leader().log_start_offset == log_start_offset, "the leader hears of it")


async def assert_agree(shared: Bench, running: Running) -> None:
    leader = running.leader()
    (rows,) = await shared.metadata.load_segments([leader.partition])
    assert [row.object_key for row in leader.segments] == [row.object_key for row in rows]


async def test_a_caller_that_waited_for_long_is_told_so_and_the_leader_hears_of_it_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_start, "_LONGEST_ANSWER_MS", 20)
    async with bench() as shared, shared.engine() as running:
        await led_log(running)
        shared.metadata.fail("advance_log_start", times=SOME, lost_answer=True)

        with pytest.raises(OutcomeUnknown):
            await finishes(running.engine.maintenance.move_log_start(running.leader(), 2), "the answer")
        assert running.leader().log_start_offset == 0

        await until_moved(running, 2)
        await assert_agree(shared, running)


async def test_a_move_outlives_its_caller() -> None:
    async with bench() as shared, shared.engine() as running:
        await led_log(running)
        shared.metadata.fail("advance_log_start", times=SOME, lost_answer=True)
        asking = asyncio.ensure_future(running.engine.maintenance.move_log_start(running.leader(), 2))
        await until(lambda: "advance_log_start" in shared.metadata.calls, "the store is asked")
        asking.cancel()

        await until_moved(running, 2)
        await assert_agree(shared, running)


async def test_a_lease_that_is_lost_and_taken_again_does_not_end_a_move_in_doubt() -> None:
    async with bench() as shared, shared.engine() as running:
        await led_log(running)
        shared.metadata.fail("advance_log_start", times=SOME, lost_answer=True)
        moving = asyncio.ensure_future(running.engine.maintenance.move_log_start(running.leader(), 2))
        # The first answer was lost when it is asked once more: from then on the move is in doubt.
        await until(lambda: shared.metadata.calls.count("advance_log_start") > 1, "the store is asked again")
        shared.metadata.heal()
        shared.clock.pass_time(60_000)
        asked = shared.metadata.calls.count("advance_log_start")
        await until(lambda: shared.metadata.calls.count("advance_log_start") > asked, "the store is asked later")
        await running.engine.leadership.renew()

        await finishes(moving, "the move")

        assert running.leader().epoch == 2
        assert running.leader().log_start_offset == 2
        await assert_agree(shared, running)


async def test_a_move_ends_with_its_leader() -> None:
    async with bench() as shared, shared.engine() as running:
        await led_log(running)
        topic = running.topics.get("orders")
        shared.metadata.fail("advance_log_start", times=1_000)
        moving = asyncio.ensure_future(running.engine.maintenance.move_log_start(running.leader(), 2))
        await until(lambda: "advance_log_start" in shared.metadata.calls, "the store is asked")

        await running.topics.delete(topic)

        with pytest.raises(NotLeader):
            await finishes(moving, "the move")


async def test_a_move_ends_with_its_engine() -> None:
    async with bench() as shared, shared.engine() as running:
        await led_log(running)
        shared.metadata.fail("advance_log_start", times=1_000)
        moving = asyncio.ensure_future(running.engine.maintenance.move_log_start(running.leader(), 2))
        await until(lambda: "advance_log_start" in shared.metadata.calls, "the store is asked")

        await running.engine.abort()

        with pytest.raises(NotLeader):
            await finishes(moving, "the move")


async def test_moves_of_one_log_come_one_after_the_other_and_never_go_back() -> None:
    async with bench() as shared, shared.engine() as running:
        await led_log(running)
        move = running.engine.maintenance.move_log_start
        shared.metadata.fail("advance_log_start", lost_answer=True)

        await finishes(asyncio.gather(*(move(running.leader(), offset) for offset in (2, 1, 3))), "the moves")

        assert running.leader().log_start_offset == 3
        await assert_agree(shared, running)
