"""The local store's own promises: durable before it answers, whole or not at all, and honest about its disk."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import resource
import threading
from pathlib import Path
from typing import Any

import pytest

from services.clock import ManualClock
from streamhouse.model.errors import AlreadyExists, InvalidInput, NotFound, StorageUnavailable
from streamhouse.objects.local import LocalStore


def open_store(directory: Path) -> LocalStore:
    return LocalStore(directory, ManualClock())


async def listed(store: LocalStore) -> list[str]:
    return [info.key async for info in store.list("")]


class Syscalls:
    """Notes what is asked of the file system, in order, and fails a call when told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[str] = []
        self._failing: list[str] = []
        for name in ("write", "fdatasync", "fsync", "link", "unlink", "mkdir"):
            monkeypatch.setattr(os, name, self._wrap(name, getattr(os, name)))

    def fail_next(self, name: str) -> None:
        self._failing.append(name)

    def _wrap(self, name: str, real: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.seen.append(name)
            if name in self._failing:
                self._failing.remove(name)
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **options)

        return call


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return open_store(tmp_path / "objects")


@pytest.fixture
def syscalls(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> Syscalls:
    return Syscalls(monkeypatch)


async def test_content_is_synced_before_it_has_a_name_and_the_name_before_the_answer(
    store: LocalStore, syscalls: Syscalls
) -> None:
    await store.create("a/b/c", [b"12", b"34"])
    # Each new directory's entry is synced in its parent, so that a crash cannot take the path away.
    assert syscalls.seen == [
        *("write", "write", "fdatasync"),
        *("mkdir", "fsync", "mkdir", "fsync"),
        *("link", "fsync"),
        "unlink",
    ]
    syscalls.seen.clear()
    await store.create("a/b/d", [b"56"])
    assert syscalls.seen == ["write", "fdatasync", "link", "fsync", "unlink"]


async def test_a_name_that_is_found_taken_is_synced_before_that_is_answered(
    store: LocalStore, syscalls: Syscalls
) -> None:
    """It may be our own earlier try that died before it could sync it."""
    await store.create("a", [b"x"])
    syscalls.seen.clear()
    with pytest.raises(AlreadyExists):
        await store.create("a", [b"x"])
    assert syscalls.seen == ["write", "fdatasync", "link", "fsync", "unlink"]


@pytest.mark.parametrize("call", ["write", "fdatasync", "link", "fsync"])
async def test_a_disk_error_leaves_nothing_behind_and_the_next_try_stores_it_whole(
    store: LocalStore, syscalls: Syscalls, tmp_path: Path, call: str
) -> None:
    await store.create("dir/first", [b"x"])
    syscalls.fail_next(call)
    with pytest.raises(StorageUnavailable, match="Input/output error"):
        await store.create("dir/key", [b"content"])
    assert await listed(store) == ["dir/first"]
    assert os.listdir(tmp_path / "objects" / ".uploads") == []
    await store.create("dir/key", [b"content"])
    assert await store.get("dir/key") == b"content"


async def test_a_full_disk_is_unavailable_reads_go_on_and_it_heals(store: LocalStore) -> None:
    await store.create("small", [b"x" * 1000])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(StorageUnavailable):
            await store.create("big", [b"x" * 60_000, b"y" * 60_000])
        assert await store.get("small") == b"x" * 1000
        assert await listed(store) == ["small"]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    await store.create("big", [b"x" * 60_000, b"y" * 60_000])
    assert (await store.head("big")).size_bytes == 120_000


async def test_what_a_crash_left_is_invisible_and_gone_after_the_next_open(tmp_path: Path, store: LocalStore) -> None:
    leftover = tmp_path / "objects" / ".uploads" / "0123456789abcdef"
    leftover.write_bytes(b"half of an obj")
    assert await listed(store) == []
    reopened = open_store(tmp_path / "objects")
    assert not leftover.exists()
    assert await listed(reopened) == []


async def test_an_upload_of_another_process_is_left_to_it(tmp_path: Path, store: LocalStore) -> None:
    upload = tmp_path / "objects" / ".uploads" / "0123456789abcdef"
    with upload.open("wb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        open_store(tmp_path / "objects")
        assert upload.exists()
    open_store(tmp_path / "objects")
    assert not upload.exists()


async def test_reads_do_not_wait_for_slow_syncs(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.create("there", [b"x"])
    disk_is_back = threading.Event()
    real = os.fdatasync

    def slow(file: int) -> None:
        disk_is_back.wait()
        real(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    writes = [asyncio.create_task(store.create(f"slow/{number}", [b"x"])) for number in range(20)]
    try:
        assert await store.get("there") == b"x"
        assert await listed(store) == ["there"]
        assert not any(write.done() for write in writes)
    finally:
        disk_is_back.set()
    await asyncio.gather(*writes)
    assert len(await listed(store)) == 21


async def test_a_key_below_an_object_is_refused(store: LocalStore) -> None:
    await store.create("a", [b"x"])
    for key in ("a/b", "a/b/c"):
        with pytest.raises(InvalidInput):
            await store.create(key, [b"y"])
        with pytest.raises(NotFound):
            await store.get(key)
    assert await listed(store) == ["a"]


async def test_a_list_is_in_byte_order_of_whole_keys(store: LocalStore) -> None:
    keys = ["a-b/x", "a.b/x", "a/x", "a/y/z", "a0/x", "aB", "b"]
    for key in reversed(keys):
        await store.create(key, [b"x"])
    assert await listed(store) == sorted(keys)


async def test_an_object_is_as_old_as_the_clock_says(tmp_path: Path) -> None:
    clock = ManualClock()
    store = LocalStore(tmp_path / "objects", clock)
    await store.create("a", [b"x"])
    clock.advance(3_600_000)
    await store.create("b", [b"x"])
    ages = [clock.now_ms() - info.modified_at_ms async for info in store.list("")]
    assert ages == [3_600_000, 0]


def test_a_directory_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageUnavailable, match="cannot use the object directory"):
        open_store(tmp_path / "file" / "objects")
