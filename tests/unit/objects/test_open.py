"""URLs of object stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.clock import ManualClock
from streamhouse.model.errors import InvalidConfig
from streamhouse.objects.local import LocalStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.objects.open import open_store
from streamhouse.objects.s3 import S3Options


async def test_a_file_url_names_an_absolute_directory(tmp_path: Path) -> None:
    store = await open_store(f"file://{tmp_path}/with%20space", ManualClock())
    assert isinstance(store, LocalStore)
    await store.create("a/b", [b"x"])
    assert (tmp_path / "with space" / "a" / "b").read_bytes() == b"x"
    await store.close()


async def test_a_file_url_without_slashes_names_a_relative_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = await open_store("file:objects", ManualClock())
    await store.create("a", [b"x"])
    await store.close()
    assert (tmp_path / "objects" / "a").exists()


async def test_memory_is_a_store() -> None:
    assert isinstance(await open_store("memory:", ManualClock()), MemoryStore)


@pytest.mark.parametrize(
    "url",
    ["", "s3", "s3:", "s3://", "s3:///prefix", "s3://bad bucket/x", "s3://bucket/../x", "s3://bucket//x", "file:",
     "file://", "file://host/dir", "ftp://host/dir", "/just/a/path", "memory:x"],
)  # fmt: skip
async def test_a_url_that_is_none_is_refused_with_a_hint(url: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        await open_store(url, ManualClock())
    assert caught.value.hint


@pytest.mark.parametrize("options", [S3Options(endpoint="localhost:9000"), S3Options(access_key_id="only the id")])
async def test_options_that_cannot_work_are_refused_with_a_hint(options: S3Options) -> None:
    with pytest.raises(InvalidConfig) as caught:
        await open_store("s3://bucket", ManualClock(), options)
    assert caught.value.hint
