"""A clock that a test can move."""

from __future__ import annotations

from streamhouse.runtime.clock import SystemClock


class MovableClock(SystemClock):
    def __init__(self) -> None:
        self._wall_shift_ms = 0
        self._monotonic_shift_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self._wall_shift_ms

    def monotonic_ms(self) -> int:
        return super().monotonic_ms() + self._monotonic_shift_ms

    def jump(self, duration_ms: int) -> None:
        """The wall clock is set, forward or back, as by an operator or a bad time server."""
        self._wall_shift_ms += duration_ms

    def pass_time(self, duration_ms: int) -> None:
        """Time passes, on both clocks, as while a process is paused."""
        self._wall_shift_ms += duration_ms
        self._monotonic_shift_ms += duration_ms
