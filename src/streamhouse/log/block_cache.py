"""Blocks and indexes read from the object store, kept within a byte budget, each loaded once however many want it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LoadingCache(Generic[Value]):
    """Least recently used goes first. What is being loaded is a future that everybody awaits."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._entries: OrderedDict[object, tuple[Value, int]] = OrderedDict()
        self._loading: dict[object, asyncio.Future[Value]] = {}
        self.used_bytes = 0
        self.hits = 0
        self.misses = 0

    def get(self, key: object) -> Value | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        self.hits += 1
        return entry[0]

    def loading(self, key: object) -> asyncio.Future[Value] | None:
        return self._loading.get(key)

    def begin(self, key: object) -> asyncio.Future[Value]:
        """Claim the loading of a key; `finish` or `fail` must follow."""
        self.misses += 1
        future: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        # Nobody may be left to await a failed load.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._loading[key] = future
        return future

    def finish(self, key: object, value: Value, size_bytes: int) -> None:
        future = self._loading.pop(key)
        if not future.done():
            future.set_result(value)
        self.put(key, value, size_bytes)

    def put(self, key: object, value: Value, size_bytes: int) -> None:
        _, replaced_bytes = self._entries.pop(key, (None, 0))
        self._entries[key] = (value, size_bytes)
        self.used_bytes += size_bytes - replaced_bytes
        while self.used_bytes > self.limit_bytes:
            _, (_, freed_bytes) = self._entries.popitem(last=False)
            self.used_bytes -= freed_bytes

    def fail(self, key: object, problem: BaseException) -> None:
        future = self._loading.pop(key)
        if not future.done():
            future.set_exception(problem)
