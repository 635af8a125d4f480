"""Each suite's store, once per implementation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from behaviour.metadata_stores import MetadataStoreKind, PostgresKind, SqliteKind
from behaviour.object_stores import ObjectStoreKind, faulty_kind, local_kind, measured_kind, memory_kind, s3_kind
from streamhouse.metadata.store import MetadataStore
from streamhouse.objects.store import ObjectStore


@pytest.fixture(params=["local", "memory", "faulty", "measured", "s3"])
def object_kind(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStoreKind:
    match request.param:
        case "local":
            return local_kind(tmp_path / "objects")
        case "memory":
            return memory_kind()
        case "faulty":
            return faulty_kind()
        case "measured":
            return measured_kind()
        case _:
            return s3_kind(request.getfixturevalue("s3_bucket"))


@pytest.fixture
def objects(object_kind: ObjectStoreKind, event_loop_runner: asyncio.Runner) -> Iterator[ObjectStore]:
    store = event_loop_runner.run(object_kind.open())
    yield store
    event_loop_runner.run(store.close())


@pytest.fixture(params=["sqlite", "postgres"])
def metadata_kind(request: pytest.FixtureRequest, tmp_path: Path) -> MetadataStoreKind:
    if request.param == "sqlite":
        return SqliteKind(tmp_path / "metadata.db")
    return PostgresKind(request.getfixturevalue("postgres_dsn"))


@pytest.fixture
def metadata(metadata_kind: MetadataStoreKind, event_loop_runner: asyncio.Runner) -> Iterator[MetadataStore]:
    store = event_loop_runner.run(metadata_kind.open())
    yield store
    event_loop_runner.run(store.close())


@pytest.fixture
def other_process(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, event_loop_runner: asyncio.Runner
) -> Iterator[MetadataStore]:
    """A second store over the same database."""
    store = event_loop_runner.run(metadata_kind.open())
    yield store
    event_loop_runner.run(store.close())
