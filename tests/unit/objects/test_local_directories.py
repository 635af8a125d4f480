"""The local store's directories: gone when nothing is in them, and made again when something is to be."""

from __future__ import annotations

import asyncio
from pathlib import Path

from streamhouse.objects.local import LocalStore
from streamhouse.runtime.clock import SystemClock


def directories(root: Path) -> list[str]:
    return sorted(
        path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_dir() and path.name != ".uploads"
    )


async def test_directories_go_with_their_last_object(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, SystemClock())
    await store.create("a/b/one", [b"1"])
    await store.create("a/two", [b"2"])
    await store.delete(["a/b/one"])
    assert directories(tmp_path) == ["a"]
    await store.delete(["a/two", "a/never-there"])
    assert directories(tmp_path) == []
    await store.close()


async def test_a_directory_that_another_process_removed_is_made_again(tmp_path: Path) -> None:
    writer, remover = (LocalStore(tmp_path, SystemClock()) for _ in range(2))
    for number in range(3):
        await writer.create(f"a/b/{number}", [b"x"])
        await remover.delete([f"a/b/{number}"])
    await writer.create("a/b/last", [b"y"])
    assert await remover.get("a/b/last") == b"y"
    await writer.close()
    await remover.close()


async def test_objects_come_and_go_at_once(tmp_path: Path) -> None:
    stores = [LocalStore(tmp_path, SystemClock()) for _ in range(4)]

    async def come_and_go(store: LocalStore, name: str) -> None:
        for number in range(200):
            await store.create(f"a/b/{name}-{number}", [b"x"])
            await store.delete([f"a/b/{name}-{number}"])

    await asyncio.gather(*(come_and_go(store, f"{number}") for number, store in enumerate(stores)))
    assert directories(tmp_path) == []
    for store in stores:
        await store.close()
