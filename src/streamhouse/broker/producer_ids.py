"""Producer ids, taken from the metadata store in blocks."""

from __future__ import annotations

import asyncio

from streamhouse.metadata.store import ProducerIdStore

_BLOCK = 1000


class ProducerIds:
    def __init__(self, store: ProducerIdStore) -> None:
        self._store = store
        self._next = 0
        self._end = 0
        self._refill = asyncio.Lock()

    async def take(self) -> int:
        async with self._refill:
            if self._next == self._end:
                self._next = await self._store.allocate_producer_ids(_BLOCK)
                self._end = self._next + _BLOCK
            self._next += 1
            return self._next - 1
