"""The two kinds of storage that a node can have, for tests that must hold on both."""

from __future__ import annotations

from pathlib import Path

import pytest

from node.storage import EmbeddedStorage, ServiceStorage, Storage


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def embedded(data_dir: Path) -> EmbeddedStorage:
    return EmbeddedStorage(data_dir)


@pytest.fixture(params=["sqlite+local", "postgres+s3"])
def storage(request: pytest.FixtureRequest, data_dir: Path) -> Storage:
    if request.param == "sqlite+local":
        return EmbeddedStorage(data_dir)
    return ServiceStorage(request.getfixturevalue("postgres_dsn"), request.getfixturevalue("s3_bucket"))
