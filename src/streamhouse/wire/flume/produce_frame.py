"""A produce request as its frame holds it, read for every record: names are bytes still, and the key is hashed."""

from __future__ import annotations

from typing import NamedTuple


class ProduceFrame(NamedTuple):
    """An empty key is no key. `key_hash` is the key's FNV-1a."""

    request_id: int
    topic: bytes
    partition: int
    key: bytes
    payload: bytes
    key_hash: int

    @property
    def size_bytes(self) -> int:
        return len(self.key) + len(self.payload)

    @property
    def held_bytes(self) -> int:
        """In memory, as long as it waits."""
        return len(self.topic) + self.size_bytes
