"""Time, as an object that is handed around, so that a test can jump it."""

from __future__ import annotations

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    def now_ms(self) -> int:
        """Wall-clock time; it may jump."""

    def monotonic_ms(self) -> int:
        """Time that only goes forward: for leases, ages and deadlines."""

    async def sleep_ms(self, duration_ms: float) -> None: ...


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    async def sleep_ms(self, duration_ms: float) -> None:
        await asyncio.sleep(duration_ms / 1000)
