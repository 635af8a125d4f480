"""How far a job is: counted by the workers, shown by whoever started it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from pyspark.accumulators import Accumulator

_LOOK_EVERY_SECONDS = 0.2


class Progress(Protocol):
    def advance(self, steps: int) -> None: ...


Bars: TypeAlias = Callable[[str, int], AbstractContextManager[Progress]]
"""Opens a bar for one stage of a job: what is done, and in how many steps."""


class _Silent:
    def advance(self, steps: int) -> None:
        pass


@contextmanager
def no_bars(description: str, total: int) -> Iterator[Progress]:
    yield _Silent()


@contextmanager
def watched(progress: Progress, done: Accumulator[int]) -> Iterator[None]:
    """While Spark works: workers add to `done` what they did, task by task."""
    ended = threading.Event()

    def look() -> None:
        seen = 0
        while True:
            is_over = ended.wait(_LOOK_EVERY_SECONDS)
            progress.advance(done.value - seen)
            seen = done.value
            if is_over:
                return

    watcher = threading.Thread(target=look, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
