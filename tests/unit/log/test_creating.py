"""An object that is said to exist already is ours, another's, or only being made."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from services.clock import ManualClock
from streamhouse.log.creating import create_own
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import AlreadyExists, Fenced, StorageUnavailable
from streamhouse.objects.memory import MemoryStore

KEY = "an/object"


class ConflictingStore(MemoryStore):
    """It answers as S3 does (409) to a second create-only PUT beside one that is under way."""

    async def create(self, key: str, parts: Sequence[Buffer]) -> None:
        raise AlreadyExists(f"{key} is being made")


async def create(store: MemoryStore) -> None:
    async def is_ours() -> bool:
        return await store.get(KEY) == b"ours"

    await create_own(store, KEY, [b"ours"], is_ours)


async def test_one_that_an_earlier_try_stored_is_as_good_as_made() -> None:
    store = MemoryStore(ManualClock())
    await create(store)
    await create(store)
    assert await store.get(KEY) == b"ours"


async def test_one_that_another_stored_is_not_ours_to_make() -> None:
    store = MemoryStore(ManualClock())
    await store.create(KEY, [b"theirs"])
    with pytest.raises(Fenced):
        await create(store)
    assert await store.get(KEY) == b"theirs"


async def test_one_that_is_only_being_made_is_worth_another_try() -> None:
    with pytest.raises(StorageUnavailable):
        await create(ConflictingStore(ManualClock()))
