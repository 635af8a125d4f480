"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio


class ManualClock:
    def __init__(self, now_ms: int = 1_750_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_ms = 0
        self.slept_ms: list[float] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        """At once, and noted."""
        self.slept_ms.append(duration_ms)
        self.advance(round(duration_ms))
        await asyncio.sleep(0)

    def advance(self, duration_ms: int) -> None:
        self._now_ms += duration_ms
        self._monotonic_ms += duration_ms

    def set_wall_clock(self, now_ms: int) -> None:
        """As an operator or NTP does it: monotonic time does not follow."""
        self._now_ms = now_ms
