"""When a rise is told of: the sooner the higher it is, not without something to compare with, and not for a hiccup."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from streamhouse.core.rise import FEWEST, HELD_MS, Rise

PERIOD_MS = 15_000
HOUR = 3_600_000 // PERIOD_MS
HELD = HELD_MS // PERIOD_MS
HICCUP = 60_000 // PERIOD_MS
"""Measured is the last minute: what happens once is in so many measurements."""
LEAST = 250.0


class Measured:
    def __init__(self, *values: float | None) -> None:
        self._rise = Rise(LEAST)
        self._at_ms = 0
        self.add(values)

    def add(self, values: Iterable[float | None]) -> None:
        for value in values:
            self._at_ms += PERIOD_MS
            self._rise.add(self._at_ms, value)

    def risen_from(self, value: float) -> float | None:
        return self._rise.risen_from(value)


def periods_until_told(value: float) -> int:
    measured = Measured(*[10.0] * FEWEST)
    for periods in range(2 * HELD):
        measured.add([value])
        if measured.risen_from(value) is not None:
            return periods
    raise AssertionError("it is never told of")


def test_a_rise_that_holds_is_told_of_with_what_was_usual() -> None:
    measured = Measured(*[10.0] * FEWEST)
    measured.add([LEAST + 1] * HELD)
    assert measured.risen_from(LEAST + 1) is None, "it has not held yet"
    measured.add([LEAST + 1])
    assert measured.risen_from(LEAST + 1) == 10.0
    assert measured.risen_from(200.0) is None, "it is over"


def test_the_higher_a_rise_is_the_sooner_it_is_told_of_and_never_at_one_measurement() -> None:
    assert [periods_until_told(times * LEAST) for times in (1.01, 2, 4, 7.6, 1_000)] == [8, 4, 2, 2, 1]


def test_a_rise_that_goes_up_and_down_stays_told_of_while_it_is_far_above() -> None:
    measured = Measured(*[10.0] * FEWEST)
    for value in [1_900.0, 1_900.0, 1_900.0, 300.0, 260.0, 300.0]:
        measured.add([value])
    assert measured.risen_from(300.0) == 10.0


def test_a_rise_is_told_of_for_an_hour_if_it_stays() -> None:
    measured = Measured(*[10.0] * HOUR)
    measured.add([1_900.0] * (HOUR - FEWEST))
    assert measured.risen_from(1_900.0) == 10.0
    measured.add([1_900.0] * FEWEST)
    assert measured.risen_from(1_900.0) is None
    measured.add([1_900.0] * HOUR)
    assert measured.risen_from(1_900.0) is None, "by now that is usual"


@pytest.mark.parametrize("value", [300.0, 600.0])
def test_hiccups_are_none(value: float) -> None:
    measured = Measured(*[10.0] * FEWEST)
    for _ in range(5):
        for _ in range(HICCUP):
            measured.add([value])
            assert measured.risen_from(value) is None
        measured.add([12.0])


def test_where_nothing_was_measured_for_long_enough_nothing_is_usual() -> None:
    for idle in ([], [None] * HOUR, [10.0] * (FEWEST // 2)):
        measured = Measured(*idle)
        measured.add([1_900.0] * 2 * HELD)
        assert measured.risen_from(1_900.0) is None


def test_a_pause_begins_anew() -> None:
    measured = Measured(*[10.0] * FEWEST)
    measured.add([1_900.0] * HELD)
    assert measured.risen_from(1_900.0) is not None
    measured.add([None, 1_900.0])
    assert measured.risen_from(1_900.0) is None


def test_what_is_little_or_not_many_times_the_usual_is_no_rise() -> None:
    little = Measured(*[0.5] * FEWEST)
    little.add([249.0] * 2 * HELD)
    assert little.risen_from(249.0) is None
    slow = Measured(*[100.0] * FEWEST)
    slow.add([1_999.0] * 2 * HELD)
    assert slow.risen_from(1_999.0) is None
