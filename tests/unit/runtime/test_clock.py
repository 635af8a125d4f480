"""The system's clock, through the protocol that everybody takes."""

from __future__ import annotations

import time

from streamhouse.runtime.clock import SystemClock


async def test_time_is_in_milliseconds_and_a_sleep_lasts_at_least_as_long_as_asked() -> None:
    clock = SystemClock()
    began_ms = clock.monotonic_ms()

    await clock.sleep_ms(20)

    assert clock.monotonic_ms() - began_ms >= 19
    assert abs(clock.now_ms() - time.time() * 1000) < 60_000
