"""A real store whose calls can be held up or made to fail, one by one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from streamhouse.metadata.groups import GroupRow, ShardLease
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.runtime.clock import Clock


class WatchedStore:
    def __init__(self, store: MetadataStore) -> None:
        self.real = store
        self.is_away = False
        self.problems: dict[str, Exception] = {}
        self.waiting: Counter[str] = Counter()
        """How many calls of each name are held up now."""
        self.finished: Counter[str] = Counter()
        """How many calls of each name have come back."""
        self.saved: list[int] = []
        """The generations of the groups that were saved."""
        self._gates: dict[str, asyncio.Event] = {}
        self._answer_gates: dict[str, asyncio.Event] = {}

    def hold(self, name: str) -> None:
        """Calls of this name wait from now on."""
        self._gates[name] = asyncio.Event()

    def hold_answers(self, name: str) -> None:
        """Calls of this name are made from now on, but what they found waits."""
        self._answer_gates[name] = asyncio.Event()

    def let_through(self, name: str) -> None:
        for gates in (self._gates, self._answer_gates):
            if name in gates:
                gates.pop(name).set()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.real, name)

        async def call(*arguments: Any) -> Any:
            await self._pass(name)
            result = await method(*arguments)
            await self._wait(self._answer_gates, name)
            self.finished[name] += 1
            return result

        return call

    async def save_group(self, lease: ShardLease, row: GroupRow) -> None:
        await self._pass("save_group")
        await self.real.save_group(lease, row)
        self.saved.append(row.generation)

    async def _pass(self, name: str) -> None:
        await self._wait(self._gates, name)
        if self.is_away:
            raise MetadataUnavailable("away")
        if name in self.problems:
            raise self.problems[name]

    async def _wait(self, gates: dict[str, asyncio.Event], name: str) -> None:
        if name in gates:
            self.waiting[name] += 1
            try:
                await gates[name].wait()
            finally:
                self.waiting[name] -= 1


@asynccontextmanager
async def watched_store(clock: Clock) -> AsyncIterator[WatchedStore]:
    metadata = await open_metadata("sqlite::memory:", clock)
    try:
        yield WatchedStore(metadata)
    finally:
        await metadata.close()
