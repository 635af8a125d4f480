"""A clock that a test moves: the wall clock alone, or time itself."""

from __future__ import annotations

from streamhouse.runtime.clock import SystemClock
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
