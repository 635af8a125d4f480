"""When the next record that a group has to read was written: a read of one record, and none if the group stands still,
as what is at an offset does not change."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterable

from streamhouse.broker.measures import DoorMeasures
from streamhouse.broker.records import RecordDoor
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.topic import Topic
from streamhouse.server.doors import DoorContext

Place = tuple[int, int]
"""A partition and an offset in it."""
_KEPT = 10_000
_AT_ONCE = 8
_PATIENCE_MS = 2_000
MOST_READS = 200
"""For one answer."""


class NextRecordTimes:
    def __init__(self, context: DoorContext) -> None:
        # What is read for this was read by nobody's client.
        self._door: RecordDoor = context.records.at(DoorMeasures())
        self._known: OrderedDict[tuple[bytes, Place], int] = OrderedDict()

    async def find(self, topic: Topic, places: Iterable[Place]) -> dict[Place, int]:
        """By place; what cannot be read now is left out, and of very many those that come last."""
        topic_id = topic.topic_id.bytes
        found: dict[Place, int] = {}
        unknown: list[Place] = []
        for place in dict.fromkeys(places):
            if (topic_id, place) in self._known:
                self._known.move_to_end((topic_id, place))
                found[place] = self._known[topic_id, place]
            else:
                unknown.append(place)
        turns = asyncio.Semaphore(_AT_ONCE)

        async def read(place: Place) -> None:
            async with turns:
                time_ms = await self._read(topic, place)
            if time_ms is not None:
                found[place] = self._known[topic_id, place] = time_ms

        await asyncio.gather(*map(read, unknown[:MOST_READS]))
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return found

    async def _read(self, topic: Topic, place: Place) -> int | None:
        partition, offset = place
        try:
            page = await self._door.read(topic, partition, offset, max_records=1, max_bytes=1, timeout_ms=_PATIENCE_MS)
        except StreamHouseError:
            return None
        return page.records[0].timestamp_ms if page.records else None
