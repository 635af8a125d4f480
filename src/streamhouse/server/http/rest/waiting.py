"""Those who wait for records that are not there yet: so many at most, and none of them holds up a node that ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from streamhouse.model.errors import Unavailable

MAX_WAITING = 256


class Waiting:
    def __init__(self, *, max_waiting: int = MAX_WAITING) -> None:
        self._max_waiting = max_waiting
        self._waiting = 0
        self._to_end: set[Callable[[], None]] = set()
        self.is_ending = False

    @contextmanager
    def place(self, end: Callable[[], None] | None = None) -> Iterator[None]:
        """One of the places, as long as the block lasts. `end` is called when the node ends; who looks at `is_ending`
        from time to time needs none."""
        if self._waiting >= self._max_waiting or self.is_ending:
            raise Unavailable("too many are waiting for records", hint="try again, or read without max_wait_ms")
        self._waiting += 1
        if end is not None:
            self._to_end.add(end)
        try:
            yield
        finally:
            self._waiting -= 1
            if end is not None:
                self._to_end.discard(end)

    def end(self) -> None:
        """Everybody is to finish with what there is."""
        self.is_ending = True
        for end in list(self._to_end):
            end()
