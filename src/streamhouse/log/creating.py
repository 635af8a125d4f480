"""Objects whose keys nobody else makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, Fenced, NotFound, StorageUnavailable
from streamhouse.objects.store import ObjectStore


async def create_own(
    objects: ObjectStore, key: str, parts: Sequence[Buffer], is_ours: Callable[[], Awaitable[bool]]
) -> None:
    """One that is there already is ours if an earlier try succeeded and its answer was lost, else Fenced."""
    try:
        await objects.create(key, parts)
    except AlreadyExists:
        try:
            is_stored = await is_ours()
        except NotFound:
            # S3 says so, too, of a key that an earlier try is just making, and which may never be made.
            raise StorageUnavailable(f"{key} is being made by an earlier try") from None
        if not is_stored:
            raise Fenced(f"object {key} was written by another process") from None
