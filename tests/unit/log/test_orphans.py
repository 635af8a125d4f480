"""Orphans: only what was found twice, long enough apart by the clock that only goes forward."""

from __future__ import annotations

from services.clock import ManualClock
from streamhouse.log.orphans import OrphanWatch

GRACE_MS = 1_000


def test_an_orphan_outlives_the_grace_period_from_when_it_was_found() -> None:
    clock = ManualClock()
    watch = OrphanWatch(clock, GRACE_MS)
    assert watch.outlived(["a"]) == []
    clock.advance(GRACE_MS - 1)
    assert watch.outlived(["a", "b"]) == []
    clock.advance(1)
    assert watch.outlived(["a", "b"]) == ["a"]


def test_a_wall_clock_that_is_set_ages_nothing() -> None:
    clock = ManualClock()
    watch = OrphanWatch(clock, GRACE_MS)
    watch.outlived(["a"])
    clock.set_wall_clock(clock.now_ms() + 100 * GRACE_MS)
    assert watch.outlived(["a"]) == []


def test_what_was_registered_in_between_begins_anew() -> None:
    clock = ManualClock()
    watch = OrphanWatch(clock, GRACE_MS)
    watch.outlived(["a"])
    watch.outlived([])
    clock.advance(GRACE_MS)
    assert watch.outlived(["a"]) == []


def test_what_could_not_be_removed_is_named_again() -> None:
    clock = ManualClock()
    watch = OrphanWatch(clock, GRACE_MS)
    watch.outlived(["a"])
    clock.advance(GRACE_MS)
    assert watch.outlived(["a"]) == watch.outlived(["a"]) == ["a"]


def test_without_a_grace_period_it_still_takes_two_searches() -> None:
    watch = OrphanWatch(ManualClock(), 0)
    assert watch.outlived(["a"]) == []
    assert watch.outlived(["a"]) == ["a"]
