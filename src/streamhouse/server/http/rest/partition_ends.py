"""Where partitions end now: as their leaders say, or as it was known last of those that do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streamhouse.broker.records import LATEST, RecordDoor
from streamhouse.cluster.state import leader_of
from streamhouse.metadata.cluster import Placement
from streamhouse.model.errors import NotLeader, Unavailable
from streamhouse.model.topic import Topic
from streamhouse.server.http.rest.known_ends import KnownEnds

_LEADER_PATIENCE_S = 3.0
"""A leader that does not answer must not keep the others' offsets from whoever asks."""
_ASKED_AT_ONCE = 256


class PartitionEnds:
    def __init__(self, records: RecordDoor, known: KnownEnds) -> None:
        self._records = records
        self._known = known

    async def of(self, topic: Topic, placements: Sequence[Placement]) -> list[int]:
        """In the order of the placements, which are some of the topic's."""
        found: list[int] = []
        for start in range(0, len(placements), _ASKED_AT_ONCE):
            some = placements[start : start + _ASKED_AT_ONCE]
            found += await asyncio.gather(*(self._end(topic, placement) for placement in some))
        return found

    async def _end(self, topic: Topic, placement: Placement) -> int:
        if leader_of(placement) is None:
            return self._known.of(placement)
        try:
            async with asyncio.timeout(_LEADER_PATIENCE_S):
                found = await self._records.offset_at(topic, placement.partition.partition, LATEST)
        except (NotLeader, Unavailable, TimeoutError):
            return self._known.of(placement)
        self._known.note(placement.partition, found.leader_epoch, found.high_watermark)
        return self._known.of(placement)
