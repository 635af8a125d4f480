"""Byte budgets: how much memory records may take, and who waits when it is used up."""

from __future__ import annotations

from collections.abc import Callable


class ByteBudget:
    """A limit that producers run into and uploads relieve.

    Taking is never refused, since what was received must be finished; instead a full budget stops the reading of
    sockets, and those waiting are called when a quarter of it is free again."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.is_full = False
        self._waiting: dict[Callable[[], None], None] = {}

    def take(self, size_bytes: int) -> None:
        self.used_bytes += size_bytes
        self.is_full = self.used_bytes >= self.limit_bytes

    def give_back(self, size_bytes: int) -> None:
        self.used_bytes -= size_bytes
        assert self.used_bytes >= 0, "more given back than taken"
        self.is_full = self.used_bytes >= self.limit_bytes
        if self._waiting and not self.has_little_room():
            waiting, self._waiting = self._waiting, {}
            for resume in waiting:
                resume()

    def when_free(self, resume: Callable[[], None]) -> None:
        """Call once when there is room again."""
        self._waiting[resume] = None

    def forget(self, resume: Callable[[], None]) -> None:
        self._waiting.pop(resume, None)

    @property
    def is_waited_for(self) -> bool:
        return bool(self._waiting)

    def has_little_room(self) -> bool:
        """More than three quarters are used."""
        return self.used_bytes * 4 > self.limit_bytes * 3
