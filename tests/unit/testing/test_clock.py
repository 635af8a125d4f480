"""A clock that a test moves: the wall clock alone, or time itself."""

from __future__ import annotations

import asyncio

import pytest

from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.tasks import begin
from streamhouse.testing.clock import MovableClock

HOUR_MS = 3_600_000


def test_it_is_the_systems_clock_until_it_is_moved() -> None:
    clock, system = MovableClock(), SystemClock()

    assert abs(clock.now_ms() - system.now_ms()) < 1_000
    assert abs(clock.monotonic_ms() - system.monotonic_ms()) < 1_000


def test_a_jump_moves_the_wall_clock_alone() -> None:
    clock, system = MovableClock(), SystemClock()

    clock.jump(-HOUR_MS)

    assert abs(clock.now_ms() - (system.now_ms() - HOUR_MS)) < 1_000
    assert abs(clock.monotonic_ms() - system.monotonic_ms()) < 1_000


def test_time_that_passes_moves_both() -> None:
    clock, system = MovableClock(), SystemClock()

    clock.pass_time(HOUR_MS)

    assert abs(clock.now_ms() - (system.now_ms() + HOUR_MS)) < 1_000
    assert abs(clock.monotonic_ms() - (system.monotonic_ms() + HOUR_MS)) < 1_000


async def test_who_sleeps_wakes_when_the_time_has_passed_at_once() -> None:
    clock = MovableClock()
    long, longer = (begin(clock.sleep_ms(hours * HOUR_MS)) for hours in (1, 3))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    clock.pass_time(HOUR_MS)
    await long
    assert not longer.done()

    clock.pass_time(2 * HOUR_MS)
    await longer


async def test_who_sleeps_wakes_by_itself_and_not_by_a_jump_of_the_wall_clock() -> None:
    clock = MovableClock()
    sleeper = begin(clock.sleep_ms(HOUR_MS))
    await asyncio.sleep(0)

    clock.jump(2 * HOUR_MS)
    await clock.sleep_ms(20)

    assert not sleeper.done()
    sleeper.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sleeper


def test_set_right_it_is_the_systems_wall_clock_again_and_time_has_not_gone_back() -> None:
    clock, system = MovableClock(), SystemClock()
    clock.pass_time(HOUR_MS)
    clock.jump(-5 * HOUR_MS)

    clock.set_right()

    assert abs(clock.now_ms() - system.now_ms()) < 1_000
    assert abs(clock.monotonic_ms() - (system.monotonic_ms() + HOUR_MS)) < 1_000
