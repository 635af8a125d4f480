"""What the tests of commands on a cluster share."""

from __future__ import annotations

from pathlib import Path

import pytest

from stored_cluster.shell import ClusterShell
from streamhouse.metadata.store import MetadataStore


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "metadata.db"


@pytest.fixture
def shell(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> ClusterShell:
    """A cluster in a SQLite file and a directory, with nothing in it."""
    for variable in ("STREAMHOUSE_METADATA", "STREAMHOUSE_CONFIG", "STREAMHOUSE_LIVENESS", "STREAMHOUSE_BOOTSTRAP"):
        monkeypatch.delenv(variable, raising=False)
    shell = ClusterShell(f"sqlite://{database}", tmp_path / "objects", capsys)

    async def make(store: MetadataStore) -> None:
        await store.cluster_id()

    shell.change(make)
    return shell
