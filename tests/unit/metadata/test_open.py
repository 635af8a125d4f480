"""URLs of metadata stores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.clock import ManualClock
from streamhouse.metadata.open import open_metadata
from streamhouse.model.errors import InvalidConfig, StreamHouseError


async def test_a_sqlite_url_names_an_absolute_file(tmp_path: Path) -> None:
    store = await open_metadata(f"sqlite://{tmp_path}/with%20space.db", ManualClock())
    await store.close()
    assert (tmp_path / "with space.db").exists()


async def test_a_sqlite_url_without_slashes_names_a_relative_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    store = await open_metadata("sqlite:data/m.db", ManualClock())
    await store.close()
    assert (tmp_path / "data" / "m.db").exists()


async def test_a_sqlite_url_may_name_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = await open_metadata("sqlite::memory:", ManualClock())
    assert await store.list_topics() == []
    await store.close()
    assert os.listdir(tmp_path) == []


async def test_both_names_of_postgresql_open_it(postgres_dsn: str) -> None:
    for url in (postgres_dsn, postgres_dsn.replace("postgresql://", "postgres://")):
        store = await open_metadata(url, ManualClock())
        assert await store.list_topics() == []
        await store.close()


@pytest.mark.parametrize(
    "url", ["", "sqlite", "sqlite:", "sqlite://", "sqlite://host/file", "mysql://u:secret@h/db", "/just/a/path"]
)
async def test_a_url_that_is_none_is_refused_with_a_hint_and_without_secrets(url: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        await open_metadata(url, ManualClock())
    assert isinstance(caught.value, StreamHouseError)
    assert "sqlite:///" in str(caught.value)
    assert "secret" not in str(caught.value)
