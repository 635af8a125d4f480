"""Answers that may be a little old: however many people watch, what they watch is worked out once for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from streamhouse.runtime.clock import Clock

T = TypeVar("T")


class Recent(Generic[T]):
    def __init__(self, work_out: Callable[[], Awaitable[T]], clock: Clock, max_age_ms: int) -> None:
        self._work_out = work_out
        self._clock = clock
        self._max_age_ms = max_age_ms
        self._working = asyncio.Lock()
        self._answer: tuple[int, T] | None = None

    async def get(self) -> T:
        """An answer of which no part is older than `max_age_ms`; a failure is for whoever asked, and not kept."""
        async with self._working:
            asked_at_ms = self._clock.monotonic_ms()
            if self._answer is None or asked_at_ms - self._answer[0] > self._max_age_ms:
                self._answer = asked_at_ms, await self._work_out()
            return self._answer[1]
