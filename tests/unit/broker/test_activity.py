"""What still waits, as far as looks can tell."""

from __future__ import annotations

from services.clock import ManualClock
from streamhouse.broker.activity import Stall


def test_a_stall_lasts_from_the_first_look_that_saw_it_until_something_is_done() -> None:
    clock = ManualClock()
    stall = Stall(clock)
    assert stall.lasts_ms(0, 0) == 0
    assert stall.lasts_ms(3, 7) == 0
    clock.advance(2_000)
    assert stall.lasts_ms(5, 7) == 2_000
    clock.advance(2_000)
    assert stall.lasts_ms(5, 8) == 0, "something was done, and others wait"
    clock.advance(1_000)
    assert stall.lasts_ms(5, 8) == 1_000
    assert stall.lasts_ms(0, 8) == 0
    clock.advance(1_000)
    assert stall.lasts_ms(1, 8) == 0
