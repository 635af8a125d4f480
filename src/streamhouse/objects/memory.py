"""Objects in this process's memory: for the test broker and for throw-away nodes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, CorruptData, NotFound
from streamhouse.objects.checks import check_key, check_prefix, check_range, check_suffix
from streamhouse.objects.store import ObjectInfo
from streamhouse.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class _Object:
    content: bytes
    modified_at_ms: int


class MemoryStore:
    """As durable as the process. No call awaits anything, so each is atomic."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._objects: dict[str, _Object] = {}

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        if check_key(key) in self._objects:
            raise AlreadyExists(f"object {key!r} exists")
        self._objects[key] = _Object(b"".join(parts), self._clock.now_ms())

    async def get(self, key: str) -> bytes:
        return self._find(key).content

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        check_range(start, end)
        content = self._find(key).content
        if end > len(content):
            raise CorruptData(f"object {key!r} has {len(content)} bytes, not the range [{start}, {end})")
        return content[start:end]

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        check_suffix(size_bytes)
        content = self._find(key).content
        return content[max(len(content) - size_bytes, 0) :], len(content)

    async def head(self, key: str) -> ObjectInfo:
        return self._describe(key, self._find(key))

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        start = check_prefix(prefix)
        for key, found in sorted(self._objects.items(), key=lambda item: item[0]):
            if key.startswith(start):
                yield self._describe(key, found)

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._objects.pop(check_key(key), None)

    async def close(self) -> None:
        """Keeps the objects: whoever holds this store may go on reading, as from a bucket."""

    def _find(self, key: str) -> _Object:
        found = self._objects.get(check_key(key))
        if found is None:
            raise NotFound(f"no object {key!r}")
        return found

    @staticmethod
    def _describe(key: str, found: _Object) -> ObjectInfo:
        return ObjectInfo(key=key, size_bytes=len(found.content), modified_at_ms=found.modified_at_ms)
