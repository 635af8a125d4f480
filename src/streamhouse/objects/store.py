"""What we ask of an object store: eight calls, which local, memory and S3 stores answer alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from streamhouse.model.buffer import Buffer


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInfo:
    key: str
    size_bytes: int
    modified_at_ms: int


class ObjectStore(Protocol):
    """Keys are '/'-separated relative paths of letters, digits and '._=-'; others are InvalidInput. Every call may
    raise StorageUnavailable, which is worth a retry; a create or delete may then have taken effect all the same."""

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        """Store a new object, whole and durable before this returns; AlreadyExists if the key is taken."""

    async def get(self, key: str) -> bytes:
        """The whole object; NotFound if there is none. So for the other reads."""

    async def get_range(self, key: str, start: int, end: int) -> bytes:
        """Bytes [start, end); a range that is not wholly inside the object is CorruptData."""

    async def get_suffix(self, key: str, size_bytes: int) -> tuple[bytes, int]:
        """The last bytes, fewer if the object is smaller, and the object's whole size."""

    async def head(self, key: str) -> ObjectInfo:
        """Size and time without the content."""

    def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        """Objects below a prefix, which is empty or names whole parts of the key (so 'a' has 'a/b' but not 'ab'), in
        key order."""

    async def delete(self, keys: Sequence[str]) -> None:
        """Remove what is there; a key that is not there is no error."""

    async def close(self) -> None:
        """Let go of connections."""


@runtime_checkable
class Presigner(Protocol):
    """A store that gives out URLs of its own, at which anybody may do one thing with one object for a while."""

    async def sign(self, method: Literal["GET", "PUT"], keys: Sequence[str], lifetime_s: int) -> Sequence[str]:
        """In the order asked; whether the objects exist is not looked at."""
