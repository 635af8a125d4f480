"""An object store that counts what is asked of it, for whoever pays per request."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import Unavailable
from streamhouse.objects.store import ObjectInfo, ObjectStore, Presigner
from streamhouse.runtime.measures import Histogram, stopwatch_s

OPERATIONS = ("put", "get", "head", "list", "delete")


class StoreMeasures:
    """By operation. A request failed if it is worth a retry; that an object is not there, or there already, is an
    answer."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter(dict.fromkeys(OPERATIONS, 0))
        self.failed: Counter[str] = Counter(dict.fromkeys(OPERATIONS, 0))
        self.seconds = {operation: Histogram() for operation in OPERATIONS}
        self.put_bytes = 0
        self.got_bytes = 0

    @contextmanager
    def request(self, operation: str) -> Iterator[None]:
        begun_s = stopwatch_s()
        try:
            yield
        except Unavailable:
            self.failed[operation] += 1
            raise
        except Exception:
            self._answered(operation, begun_s)
            raise
        self._answered(operation, begun_s)

    def _answered(self, operation: str, begun_s: float) -> None:
        self.answered[operation] += 1
        self.seconds[operation].observe(stopwatch_s() - begun_s)


class MeasuredStore:
    def __init__(self, store: ObjectStore) -> None:
        self.measures = StoreMeasures()
        self._store = store

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        with self.measures.request("put"):
            await self._store.create(key, parts)
        self.measures.put_bytes += sum(map(len, parts))

    async def get(self, key: str) -> bytes:
        with self.measures.request("get"):
            return self._got(await self._store.get(key))

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        with self.measures.request("get"):
            return self._got(await self._store.get_range(key, start, end))

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        with self.measures.request("get"):
            suffix, whole_bytes = await self._store.get_suffix(key, size_bytes)
            return self._got(suffix), whole_bytes

    async def head(self, key: str) -> ObjectInfo:
        with self.measures.request("head"):
            return await self._store.head(key)

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        """Counted as one request, when it is done, and without its time, most of which is the reader's; a store asks
        again for each page."""
        try:
            async for info in self._store.list(prefix):
                yield info
        except Unavailable:
            self.measures.failed["list"] += 1
            raise
        self.measures.answered["list"] += 1

    async def delete(self, keys: Sequence[str]) -> None:
        with self.measures.request("delete"):
            await self._store.delete(keys)

    async def close(self) -> None:
        await self._store.close()

    def _got(self, data: bytes) -> bytes:
        self.measures.got_bytes += len(data)
        return data


class MeasuredPresigner(MeasuredStore):
    """The same over a store that gives out URLs. What is done at those is not seen here."""

    def __init__(self, store: ObjectStore, presigner: Presigner) -> None:
        super().__init__(store)
        self._presigner = presigner

    async def sign(self, method: Literal["GET", "PUT"], keys: Sequence[str], lifetime_s: int) -> Sequence[str]:
        return await self._presigner.sign(method, keys, lifetime_s)


def measured(store: ObjectStore) -> MeasuredStore:
    return MeasuredPresigner(store, store) if isinstance(store, Presigner) else MeasuredStore(store)
