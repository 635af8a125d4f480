"""Asks again and again until something is so, or until there is no more time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from streamhouse.runtime.clock import SystemClock

_INTERVAL_MS = 200


async def becomes_true(check: Callable[[], Awaitable[bool]], *, timeout_ms: int) -> bool:
    """False when the time is over; the check is made at least once, and once more at the end."""
    clock = SystemClock()
    deadline_ms = clock.monotonic_ms() + timeout_ms
    while not await check():
        left_ms = deadline_ms - clock.monotonic_ms()
        if left_ms <= 0:
            return False
        await clock.sleep_ms(min(left_ms, _INTERVAL_MS))
    return True
