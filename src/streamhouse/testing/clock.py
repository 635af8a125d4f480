"""A clock that a test can move. Who sleeps by it wakes when the time has passed, however that came about."""

from __future__ import annotations

import asyncio

from streamhouse.runtime.clock import SystemClock


class MovableClock(SystemClock):
    """It may be moved from any thread; who sleeps by it does so on one event loop."""

    def __init__(self) -> None:
        self._wall_shift_ms = 0
        self._monotonic_shift_ms = 0
        self._moved: asyncio.Future[None] | None = None
        """Done when time has passed at once; made by the first that sleeps."""

    def now_ms(self) -> int:
        return super().now_ms() + self._wall_shift_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self._monotonic_shift_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        until_ms = self.monotonic_ms() + duration_ms
        await super().sleep_ms(0)
        while (left_ms := until_ms - self.monotonic_ms()) > 0:
            if self._moved is None:
                self._moved = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._moved], timeout=left_ms / 1000)

    def jump(self, duration_ms: int) -> None:
        """The wall clock is set, forward or back, as by an operator or a bad time server."""
        self._wall_shift_ms += duration_ms

    def pass_time(self, duration_ms: int) -> None:
        """Time passes, on both clocks."""
        self._wall_shift_ms += duration_ms
        self._monotonic_shift_ms += duration_ms
        if self._moved is not None:
            self._moved.get_loop().call_soon_threadsafe(self._wake)

    def set_right(self) -> None:
        """The wall clock is the system's again. Time that has passed has passed: the other clock only goes forward."""
        self._wall_shift_ms = 0

    def _wake(self) -> None:
        moved, self._moved = self._moved, None
        if moved is not None:
            moved.set_result(None)
