"""How late this machine is: a bound in time says something about the product only as far as processes get to run."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

_NAP_SECONDS = 0.02
_STEPS = 40
"""What a cluster does after a fault is so many steps of processes one after the other, and a busy machine may keep each
of them waiting."""


class Lateness:
    """`with Lateness() as lateness:` naps all the while, and knows by how much the worst nap overslept."""

    def __init__(self) -> None:
        self.worst_seconds = 0.0
        self._ended = threading.Event()
        self._napping = threading.Thread(target=self._nap, daemon=True)

    def __enter__(self) -> Self:
        self._napping.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._ended.set()
        self._napping.join()

    def __str__(self) -> str:
        return f"a machine that is up to {self.worst_seconds:.3f} s late"

    def limit(self, seconds: float) -> float:
        """What is to take so many seconds may take so many on this machine."""
        return seconds + _STEPS * self.worst_seconds

    def _nap(self) -> None:
        while not self._ended.is_set():
            begun = time.monotonic()
            self._ended.wait(_NAP_SECONDS)
            self.worst_seconds = max(self.worst_seconds, time.monotonic() - begun - _NAP_SECONDS)
