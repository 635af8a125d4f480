"""The object store as it is read by who takes partitions over: for how long it has been silent, and an end to the
waiting when it is known to be away."""

from __future__ import annotations

import asyncio

from streamhouse.model.errors import StorageUnavailable, Unavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock


class WatchedReads:
    def __init__(self, objects: ObjectStore, clock: Clock, remembered_ms: int) -> None:
        """`remembered_ms`: for how long a read that failed counts as one that somebody still waits for."""
        self._objects = objects
        self._clock = clock
        self._remembered_ms = remembered_ms
        self._under_way: set[asyncio.Timeout] = set()
        self._silent_since_ms: int | None = None
        self._ended_at_ms = 0
        self._is_away = False

    def overdue_ms(self) -> int:
        """For how long the store has answered none of the reads that it was asked for; those that failed soon and are
        to be tried again count as the ones that are under way."""
        now_ms = self._clock.monotonic_ms()
        is_over = not self._under_way and now_ms - self._ended_at_ms > self._remembered_ms
        return 0 if self._silent_since_ms is None or is_over else now_ms - self._silent_since_ms

    def set_away(self, is_away: bool) -> None:
        """While it is, reads fail at once, also those that are under way."""
        self._is_away = is_away
        if is_away:
            for limit in self._under_way:
                if not limit.expired():
                    limit.reschedule(asyncio.get_running_loop().time())

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        if self._is_away:
            raise _away()
        if not self.overdue_ms():
            self._silent_since_ms = self._clock.monotonic_ms()
        limit = asyncio.timeout(None)
        self._under_way.add(limit)
        is_answered = True
        try:
            async with limit:
                return await self._objects.get_range(key, start, end)
        except TimeoutError:
            is_answered = False
            raise _away() from None
        except (Unavailable, asyncio.CancelledError):
            is_answered = False
            raise
        finally:
            self._under_way.discard(limit)
            self._ended_at_ms = self._clock.monotonic_ms()
            if is_answered:
                self._silent_since_ms = self._ended_at_ms if self._under_way else None


def _away() -> StorageUnavailable:
    return StorageUnavailable("this agent does not reach the object store")
