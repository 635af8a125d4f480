"""Background tasks with an owner: started here, awaited or cancelled together, failures never silent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

_log = logging.getLogger(__name__)
_PAUSE_S = 0.5

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """For whoever waits for several things at once, and ends all of them before it returns."""
    return asyncio.get_running_loop().create_task(work)


class TaskGroup:
    """The tasks of one component. A task that dies of an unexpected error is logged and reported to `on_failure`."""

    def __init__(self, name: str, on_failure: Callable[[BaseException], None] | None = None) -> None:
        self._name = name
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work, name=f"{self._name}:{name}")
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def keep(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> asyncio.Task[Any]:
        """For work that has to go on as long as its owner, such as the renewal of leases: if it dies of an error that
        nobody expected, that is logged, and it is begun again."""
        return self.start(self._begin_again_and_again(work, name), name)

    async def _begin_again_and_again(self, work: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        while True:
            try:
                await work()
            except Exception:
                _log.exception("task %s:%s failed, beginning again", self._name, name)
                await asyncio.sleep(_PAUSE_S)
            else:
                return

    def __len__(self) -> int:
        return len(self._tasks)

    async def wait(self) -> None:
        """Until all have ended by themselves, also those started meanwhile."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await self.wait()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        problem = task.exception()
        if problem is not None:
            _log.error("task %s failed", task.get_name(), exc_info=problem)
            if self._on_failure is not None:
                self._on_failure(problem)
