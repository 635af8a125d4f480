"""An object store for code that does not run on an event loop, such as Spark's workers: the same calls, blocking."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from functools import cache
from typing import Any, TypeVar

import uvloop

from streamhouse.model.buffer import Buffer
from streamhouse.objects.open import open_store
from streamhouse.objects.s3 import S3Options
from streamhouse.objects.store import ObjectInfo, ObjectStore
from streamhouse.runtime.clock import SystemClock

T = TypeVar("T")


class BlockingStore:
    """Calls run on the process's own loop, so several threads can share it."""

    def __init__(self, open_it: Callable[[], Coroutine[Any, Any, ObjectStore]]) -> None:
        self._store = _run(open_it())

    def create(self, key: str, parts: Sequence[Buffer]) -> None:
        _run(self._store.create(key, parts))

    def get(self, key: str) -> bytes:
        return _run(self._store.get(key))

    def get_range(self, key: str, start: int, end: int) -> bytes:
        return _run(self._store.get_range(key, start, end))

    def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        return _run(self._store.get_suffix(key, size_bytes))

    def head(self, key: str) -> ObjectInfo:
        return _run(self._store.head(key))

    def list(self, prefix: str) -> list[ObjectInfo]:
        async def collect() -> list[ObjectInfo]:
            return [item async for item in self._store.list(prefix)]

        return _run(collect())

    def delete(self, keys: Sequence[str]) -> None:
        _run(self._store.delete(keys))


@cache
def blocking_store(url: str, s3: S3Options | None = None) -> BlockingStore:
    """One for each place in a process, which is kept: connections outlive a task. What a reader may not do, it is not
    asked to: the store is not probed."""
    return BlockingStore(lambda: open_store(url, SystemClock(), s3, probe=False))


def _run(call: Coroutine[Any, Any, T]) -> T:
    return asyncio.run_coroutine_threadsafe(call, _loop()).result()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """On a thread that ends with the process."""
    loop = uvloop.new_event_loop()
    threading.Thread(target=loop.run_forever, name="objects", daemon=True).start()
    return loop
