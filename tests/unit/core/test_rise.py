"""When a rise is told of: not before it has held, not without something to compare with, and not for a hiccup."""

from __future__ import annotations

from collections.abc import Iterable

from streamhouse.core.rise import FEWEST, HELD_MS, Rise

PERIOD_MS = 15_000
HOUR = 3_600_000 // PERIOD_MS
HELD = HELD_MS // PERIOD_MS


class Measured:
    def __init__(self, *values: float | None) -> None:
        self._rise = Rise(250.0)
        self._at_ms = 0
        self.add(values)

    def add(self, values: Iterable[float | None]) -> None:
        for value in values:
            self._at_ms += PERIOD_MS
            self._rise.add(self._at_ms, value)

    def risen_from(self, value: float) -> float | None:
        return self._rise.risen_from(value)


def test_a_rise_that_holds_is_told_of_with_what_was_usual() -> None:
    measured = Measured(*[10.0] * FEWEST)
    measured.add([1_900.0] * HELD)
    assert measured.risen_from(1_900.0) is None, "it has not held yet"
    measured.add([1_900.0])
    assert measured.risen_from(1_900.0) == 10.0
    assert measured.risen_from(200.0) is None, "it is over"


def test_a_rise_is_told_of_for_an_hour_if_it_stays() -> None:
    measured = Measured(*[10.0] * HOUR)
    measured.add([1_900.0] * (HOUR - FEWEST))
    assert measured.risen_from(1_900.0) == 10.0
    measured.add([1_900.0] * FEWEST)
    assert measured.risen_from(1_900.0) is None
    measured.add([1_900.0] * HOUR)
    assert measured.risen_from(1_900.0) is None, "by now that is usual"


def test_a_hiccup_is_none() -> None:
    measured = Measured(*[10.0] * FEWEST)
    for _ in range(5):
        measured.add([1_900.0] * HELD)
        measured.add([12.0])
    assert measured.risen_from(1_900.0) is None


def test_where_nothing_was_measured_for_long_enough_nothing_is_usual() -> None:
    for idle in ([], [None] * HOUR, [10.0] * (FEWEST // 2)):
        measured = Measured(*idle)
        measured.add([1_900.0] * 2 * HELD)
        assert measured.risen_from(1_900.0) is None


def test_a_pause_begins_anew() -> None:
    measured = Measured(*[10.0] * FEWEST)
    measured.add([1_900.0] * HELD)
    measured.add([None, 1_900.0])
    assert measured.risen_from(1_900.0) is None


def test_what_is_little_or_not_many_times_the_usual_is_no_rise() -> None:
    little = Measured(*[0.5] * FEWEST)
    little.add([249.0] * 2 * HELD)
    assert little.risen_from(249.0) is None
    slow = Measured(*[100.0] * FEWEST)
    slow.add([1_999.0] * 2 * HELD)
    assert slow.risen_from(1_999.0) is None
