"""Answers that may be a little old, and counts since a while ago."""

from __future__ import annotations

import asyncio

import pytest

from services.clock import ManualClock
from streamhouse.broker.activity import RecentCounts
from streamhouse.server.http.rest.recent import Recent


class Counted:
    """Gives 1, 2, 3, …, one for each time that it is asked, once it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self) -> int:
        self.asked += 1
        await self.may_answer.wait()
        return self.asked


async def test_an_answer_is_kept_until_it_is_too_old() -> None:
    clock, count = ManualClock(), Counted()
    recent = Recent(count, clock, 500)

    assert await recent.get() == 1
    clock.advance(500)
    assert await recent.get() == 1
    clock.advance(1)
    assert await recent.get() == 2


async def test_those_who_ask_together_share_one_answer() -> None:
    count = Counted()
    count.may_answer.clear()
    recent = Recent(count, ManualClock(), 500)
    asking = [asyncio.ensure_future(recent.get()) for _ in range(5)]
    await asyncio.sleep(0)
    count.may_answer.set()

    assert await asyncio.gather(*asking) == [1] * 5


async def test_a_failure_is_not_kept() -> None:
    failures = [ValueError("not now")]

    async def work_out() -> str:
        if failures:
            raise failures.pop()
        return "well"

    recent = Recent(work_out, ManualClock(), 500)
    with pytest.raises(ValueError, match="not now"):
        await recent.get()

    assert await recent.get() == "well"


def test_counts_are_since_the_start_and_later_since_a_minute_ago() -> None:
    clock = ManualClock()
    recent = RecentCounts(clock, 2)
    assert recent.since_a_while([3, 1]) == [3, 1]
    for second in range(1, 61):
        clock.advance(1_000)
        recent.since_a_while([3 + second, 1])

    clock.advance(1_000)
    # The look of one second after the start is a minute ago: 4 then.
    assert recent.since_a_while([100, 1]) == [96, 0]


def test_after_a_pause_counts_are_since_the_last_look() -> None:
    clock = ManualClock()
    recent = RecentCounts(clock, 1)
    clock.advance(5_000)
    recent.since_a_while([10])

    clock.advance(3_600_000)

    assert recent.since_a_while([17]) == [7]
