"""The object store as a model: keys are created once, and each method is atomic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamhouse.model.errors import AlreadyExists, NotFound
from streamhouse.objects.store import ObjectInfo


class Bucket:
    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._objects: dict[str, tuple[bytes, int]] = {}

    def create(self, key: str, content: bytes) -> None:
        if key in self._objects:
            raise AlreadyExists(f"object {key!r} exists")
        self._objects[key] = (content, self._now_ms())

    def get(self, key: str) -> bytes:
        if key not in self._objects:
            raise NotFound(f"no object {key!r}")
        return self._objects[key][0]

    def list(self, prefix: str) -> list[ObjectInfo]:
        return [
            ObjectInfo(key=key, size_bytes=len(content), modified_at_ms=modified_at_ms)
            for key, (content, modified_at_ms) in sorted(self._objects.items())
            if key.startswith(prefix)
        ]

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._objects.pop(key, None)
