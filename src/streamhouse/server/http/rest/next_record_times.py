"""When the next record that a group has to read was written: a read of one record, and none if the group stands still,
as what is at an offset does not change."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

from streamhouse.broker.records import RecordDoor
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import begin

Place = tuple[int, int]
"""A partition and an offset in it."""
ReadTime = Callable[[Topic, Place], Awaitable[int | None]]
_Key = tuple[bytes, Place]
_KEPT = 10_000
_AT_ONCE = 8
_READ_PATIENCE_MS = 2_000
PATIENCE_MS = 3_000
"""For one answer, however many reads it takes."""
MOST_READS = 200
"""For one answer."""
_FAILED_AGE_MS = 10_000
"""What could not be read is not tried again for so long."""


def time_reader(door: RecordDoor) -> ReadTime:
    async def read(topic: Topic, place: Place) -> int | None:
        partition, offset = place
        page = await door.read(topic, partition, offset, max_records=1, max_bytes=1, timeout_ms=_READ_PATIENCE_MS)
        return page.records[0].timestamp_ms if page.records else None

    return read


class NextRecordTimes:
    """Each place is read once, however many ask for it at the same time."""

    def __init__(self, read: ReadTime, clock: Clock, *, patience_ms: int = PATIENCE_MS) -> None:
        self._read = read
        self._clock = clock
        self._patience_s = patience_ms / 1000
        self._known: OrderedDict[_Key, int] = OrderedDict()
        self._failed_at_ms: OrderedDict[_Key, int] = OrderedDict()
        self._reading: dict[_Key, asyncio.Task[None]] = {}

    async def find(self, topic: Topic, places: Iterable[Place]) -> dict[Place, int]:
        """By place; what cannot be read in time is left out, and of very many those that come last."""
        wanted = {place: (topic.topic_id.bytes, place) for place in places}
        unknown = [key for key in wanted.values() if self._is_to_be_read(key)]
        await self._read_all(topic, unknown[:MOST_READS])
        found: dict[Place, int] = {}
        for place, key in wanted.items():
            if key in self._known:
                self._known.move_to_end(key)
                found[place] = self._known[key]
        for kept in (self._known, self._failed_at_ms):
            while len(kept) > _KEPT:
                kept.popitem(last=False)
        return found

    def _is_to_be_read(self, key: _Key) -> bool:
        failed_at_ms = self._failed_at_ms.get(key)
        has_failed = failed_at_ms is not None and self._clock.monotonic_ms() - failed_at_ms < _FAILED_AGE_MS
        return key not in self._known and not has_failed

    async def _read_all(self, topic: Topic, unknown: Sequence[_Key]) -> None:
        """Those that another one reads already are awaited, until he gives them up."""
        turns = asyncio.Semaphore(_AT_ONCE)
        own = {key: begin(self._put(topic, key, turns)) for key in unknown if key not in self._reading}
        self._reading |= own
        try:
            if unknown:
                await asyncio.wait([self._reading[key] for key in unknown], timeout=self._patience_s)
        finally:
            for key, task in own.items():
                del self._reading[key]
                task.cancel()
            outcomes = await asyncio.gather(*own.values(), return_exceptions=True)
        for problem in outcomes:
            if isinstance(problem, Exception):
                raise problem
        for key in own.keys() - self._known.keys():
            self._failed_at_ms.pop(key, None)
            self._failed_at_ms[key] = self._clock.monotonic_ms()

    async def _put(self, topic: Topic, key: _Key, turns: asyncio.Semaphore) -> None:
        async with turns:
            with suppress(StreamHouseError):
                time_ms = await self._read(topic, key[1])
                if time_ms is not None:
                    self._known[key] = time_ms
