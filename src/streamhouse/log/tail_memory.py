"""How much memory the tails of all partitions keep after their records are uploaded."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class TailOwner(Protocol):
    def evict_uploaded_chunk(self) -> int:
        """Free the oldest chunk that is wholly in the object store; 0 if there is none."""


class TailMemory:
    """Evicts uploaded chunks beyond a limit, from the partition whose last upload is longest ago."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._uploaded_bytes: OrderedDict[TailOwner, int] = OrderedDict()
        self._total_bytes = 0

    @property
    def used_bytes(self) -> int:
        return self._total_bytes

    def uploaded(self, owner: TailOwner, size_bytes: int) -> None:
        """So much more of the owner's tail could be evicted."""
        self._uploaded_bytes[owner] = self._uploaded_bytes.get(owner, 0) + size_bytes
        self._uploaded_bytes.move_to_end(owner)
        self._total_bytes += size_bytes
        while self._total_bytes > self.limit_bytes:
            oldest = next(iter(self._uploaded_bytes))
            freed = oldest.evict_uploaded_chunk()
            if freed:
                self.freed(oldest, freed)
            else:
                # Only its last chunk, still being filled, is left: nothing to gain there.
                self.forget(oldest)

    def forget(self, owner: TailOwner) -> None:
        self._total_bytes -= self._uploaded_bytes.pop(owner, 0)

    def freed(self, owner: TailOwner, freed_bytes: int) -> None:
        """So much of the owner's tail is gone."""
        if owner in self._uploaded_bytes:
            freed_bytes = min(freed_bytes, self._uploaded_bytes[owner])
            self._uploaded_bytes[owner] -= freed_bytes
            self._total_bytes -= freed_bytes
