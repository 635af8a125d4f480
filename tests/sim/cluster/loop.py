"""An event loop whose time is virtual: it jumps to the next timer, and its processes can be paused and killed."""

from __future__ import annotations

import asyncio
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

PROCESS: ContextVar[Process | None] = ContextVar("process", default=None)
"""Whose code runs now. Tasks and callbacks inherit it, so the loop knows what belongs to whom."""


class Process:
    """Callbacks that stop together: while it is paused they wait, once it is dead they never run.

    Every await that suspends is a callback, so a pause or a death can come between any two of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_alive = True
        self.is_paused = False
        self._frozen: list[Handle] = []
        self.context = copy_context()
        self.context.run(PROCESS.set, self)

    def freeze(self, handle: Handle) -> None:
        if self.is_alive:
            self._frozen.append(handle)

    def thaw(self) -> list[Handle]:
        frozen, self._frozen = self._frozen, []
        return frozen


class Handle:
    __slots__ = ("_when", "args", "callback", "context", "is_cancelled", "process")

    def __init__(self, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        self._when = when
        self.callback = callback
        self.args = args
        self.context = context
        self.is_cancelled = False
        self.process = context.get(PROCESS)

    def cancel(self) -> None:
        self.is_cancelled = True
        self.args = ()

    def cancelled(self) -> bool:
        return self.is_cancelled

    def when(self) -> float:
        return self._when


class NumberedTask(asyncio.Task):  # type: ignore[type-arg]
    """Hashed by number and not by address, so that sets of tasks have the same order in every run of a seed."""

    def __new__(cls, *_args: object, loop: VirtualLoop, **_options: object) -> NumberedTask:
        task = super().__new__(cls)
        # Before it is initialised, which puts it into a set.
        task.number = next(loop.task_numbers)
        return task

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        return self is other


class VirtualLoop(asyncio.AbstractEventLoop):
    """`thread_ms` says how long work in another thread takes; it is done at once and reported then."""

    def __init__(self, thread_ms: Callable[[], float]) -> None:
        self._thread_ms = thread_ms
        self._now = 0.0
        self._ready: deque[Handle] = deque()
        self._timers: list[tuple[float, int, Handle]] = []
        self._sequence = count()
        self._tasks: list[asyncio.Task[Any]] = []
        self.nobody = copy_context()
        """The context of what belongs to no process: the network, the services, the clients."""
        self.task_numbers = count()
        self.failures: list[str] = []
        self.steps = 0

    # --- what asyncio asks of a loop ---

    def time(self) -> float:
        return self._now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: Context | None = None) -> Handle:
        handle = Handle(self._now, callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        when = self._now + max(delay, 0.0)
        handle = Handle(when, callback, args, copy_context() if context is None else context)
        heappush(self._timers, (when, next(self._sequence), handle))
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> Handle:
        handle = Handle(when, callback, args, copy_context() if context is None else context)
        heappush(self._timers, (max(when, self._now), next(self._sequence), handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(self, work: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        task = NumberedTask(work, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(self, executor: object, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = self.create_future()
        settle: Callable[[], None]
        try:
            settle = partial(_set_unless_done, future.set_result, future, work(*args))
        except Exception as problem:
            settle = partial(_set_unless_done, future.set_exception, future, problem)
        self.call_later(self._thread_ms() / 1000, settle)
        return future

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.failures.append(f"{context.get('message')}: {context.get('exception')!r}")

    # --- what a simulation asks of it ---

    def run_until(self, until: float) -> None:
        """Everything that there is to do up to a time."""
        events._set_running_loop(self)
        try:
            ready = self._ready
            while ready or self._advance(until):
                handle = ready.popleft()
                if handle.is_cancelled:
                    continue
                process = handle.process
                if process is not None and (process.is_paused or not process.is_alive):
                    process.freeze(handle)
                    continue
                self.steps += 1
                handle.context.run(handle.callback, *handle.args)
        finally:
            events._set_running_loop(None)

    def start(self, work: Coroutine[Any, Any, None], context: Context) -> None:
        """A task of its own, whose failure is noted."""
        self.create_task(work, context=context.copy()).add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (problem := task.exception()) is not None:
            self.failures.append(f"{task.get_coro()!r} failed: {problem!r}")

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._ready.extend(process.thaw())

    def close(self) -> None:
        """Forget tasks that will never run again, also those of dead processes, without a word about each."""
        events._set_running_loop(self)
        try:
            for task in self._tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    try:
                        task.get_coro().close()
                    except (RuntimeError, GeneratorExit):
                        pass
        finally:
            events._set_running_loop(None)
        self._tasks.clear()
        self._ready.clear()
        self._timers.clear()

    def _advance(self, until: float) -> bool:
        """Move time to the next timer; False if that is later."""
        timers = self._timers
        if not timers or timers[0][0] > until:
            self._now = max(self._now, until)
            return False
        self._now = timers[0][0]
        while timers and timers[0][0] <= self._now:
            self._ready.append(heappop(timers)[2])
        return True


def _set_unless_done(settle: Callable[[Any], None], future: asyncio.Future[Any], outcome: object) -> None:
    if not future.done():
        settle(outcome)
