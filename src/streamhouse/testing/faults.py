"""What a test can make go wrong in its broker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from streamhouse.app.node import Node
from streamhouse.objects.faulty import FaultyStore, Moment, Operation
from streamhouse.testing.clock import MovableClock


class Faults:
    def __init__(self, loop: asyncio.AbstractEventLoop, objects: FaultyStore, clock: MovableClock, node: Node) -> None:
        self._loop = loop
        self._objects = objects
        self._clock = clock
        self._node = node

    def fail_puts(self, times: int | None = 1, *, lost_answer: bool = False) -> None:
        """The next uploads fail (None: until `heal`); with `lost_answer` they take effect all the same."""
        moment = Moment.AFTER if lost_answer else Moment.BEFORE
        self._on_loop(lambda: self._objects.fail(Operation.CREATE, times=times, moment=moment))

    def slow_puts(self, delay_ms: float, times: int | None = 1) -> None:
        self._on_loop(lambda: self._objects.slow(Operation.CREATE, delay_ms, times=times))

    def fail_reads(self, times: int | None = 1) -> None:
        self._on_loop(lambda: self._objects.fail(Operation.READ, times=times))

    def heal(self) -> None:
        """The object store works again."""
        self._on_loop(self._objects.heal)

    def expire_leases(self) -> None:
        """Every lease runs out now; the node takes them again when it next renews."""
        self._on_loop(self._node.engine.leadership.expire)

    def jump_clock(self, duration_ms: int) -> None:
        """Set the wall clock forward or back."""
        self._clock.jump(duration_ms)

    def pass_time(self, duration_ms: int) -> None:
        """Let time pass at once, as while a process is paused."""
        self._clock.pass_time(duration_ms)

    def _on_loop(self, action: Callable[[], None]) -> None:
        done = threading.Event()

        def run() -> None:
            try:
                action()
            finally:
                done.set()

        self._loop.call_soon_threadsafe(run)
        done.wait()
