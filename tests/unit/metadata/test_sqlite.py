"""SQLite's own faults: a file that is damaged, locked, newer or full; and how it is set up."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, acquire, make_topic, segment_commit, segments_of
from services.clock import ManualClock
from streamhouse.metadata.migrations import load_migrations
from streamhouse.metadata.sqlite import database as sqlite_database
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.model.errors import CorruptData, InvalidConfig, MetadataUnavailable


async def open_store(path: Path | str) -> SqliteMetadataStore:
    return await SqliteMetadataStore.open(str(path), ManualClock())


async def test_a_commit_is_synced_before_it_is_answered(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "m.db")
    for pragma, expected in (("journal_mode", "wal"), ("synchronous", 2), ("foreign_keys", 1)):
        assert await store._database.read(lambda c, p=pragma: c.execute(f"PRAGMA {p}").fetchone()) == (expected,)
    await store.close()


async def test_the_directory_is_made(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "new" / "deeper" / "m.db")
    await make_topic(store)
    await store.close()
    assert (tmp_path / "new" / "deeper" / "m.db").exists()


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_file_that_was_removed_is_unavailable_and_not_made_again(tmp_path: Path, is_replaced: bool) -> None:
    """SQLite itself would go on with what has no name any more, and report success."""
    store = await open_store(tmp_path / "m.db")
    await make_topic(store)
    for name in os.listdir(tmp_path):
        os.rename(tmp_path / name, tmp_path / f"old-{name}")
    if is_replaced:
        (tmp_path / "m.db").touch()

    with pytest.raises(MetadataUnavailable, match="is gone"):
        await make_topic(store, name="another")
    with pytest.raises(MetadataUnavailable, match="is gone"):
        await store.list_topics()
    await store.close()
    assert (tmp_path / "m.db").exists() == is_replaced


async def test_two_databases_in_memory_are_two(tmp_path: Path) -> None:
    first, second = await open_store(":memory:"), await open_store(":memory:")
    await make_topic(first)
    assert await second.list_topics() == []
    await first.close()
    await second.close()


@pytest.mark.parametrize("content", [b"this is not a database" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
async def test_a_file_that_is_not_a_database_is_corrupt_data(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.db").write_bytes(content)
    with pytest.raises(CorruptData):
        await open_store(tmp_path / "m.db")
    assert (tmp_path / "m.db").read_bytes() == content


async def test_damage_in_the_middle_is_corrupt_data(tmp_path: Path) -> None:
    await (await open_store(tmp_path / "m.db")).close()
    schema_bytes = (tmp_path / "m.db").stat().st_size
    store = await open_store(tmp_path / "m.db")
    await make_topic(store, 1000)
    await store.close()
    content = bytearray((tmp_path / "m.db").read_bytes())
    for page in range(schema_bytes, len(content), 4096):
        content[page : page + 100] = b"\xff" * 100
    (tmp_path / "m.db").write_bytes(content)
    damaged = await open_store(tmp_path / "m.db")
    with pytest.raises(CorruptData):
        await make_topic(damaged, 1000, name="another")
    await damaged.close()


async def test_a_database_that_another_writer_holds_is_unavailable_and_then_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "_BUSY_TIMEOUT_SECONDS", 0.05)
    store = await open_store(tmp_path / "m.db")
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MetadataUnavailable):
            await make_topic(store)
        other.execute("ROLLBACK")
    await make_topic(store)
    await store.close()


async def test_a_full_disk_is_unavailable_and_nothing_is_half_done(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "m.db")
    (partition,) = await make_topic(store)
    lease = await acquire(store, partition)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    commits = [segment_commit(lease, start, start + 1) for start in range(2000)]
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "m.db-wal").stat().st_size + 8192, limits[1]))
    try:
        with pytest.raises(MetadataUnavailable):
            await store.commit_segments(commits)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert await segments_of(store, partition) == []
    assert await store.commit_segments(commits) == [None] * 2000
    await store.close()


async def test_a_path_that_cannot_be_a_file_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "m.db"):
        with pytest.raises(MetadataUnavailable):
            await open_store(path)


async def test_a_database_of_newer_code_is_refused_and_left_alone(tmp_path: Path) -> None:
    await (await open_store(tmp_path / "m.db")).close()
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO schema_migrations VALUES (99, 'later', 0)")
    with pytest.raises(InvalidConfig, match="schema version 99"):
        await open_store(tmp_path / "m.db")


async def test_processes_that_open_a_new_file_at_once_migrate_it_once(tmp_path: Path) -> None:
    stores = await asyncio.gather(*(open_store(tmp_path / "m.db") for _ in range(6)))
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        applied = connection.execute("SELECT version, name FROM schema_migrations").fetchall()
    known = load_migrations("streamhouse.metadata.sqlite.migrations")
    assert applied == [(migration.version, migration.name) for migration in known]
    for store in stores:
        await store.close()


async def test_a_database_from_before_clusters_keeps_its_partitions_for_the_agents_that_led_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(sqlite_database, "load_migrations", lambda package: load_migrations(package)[:2])
        await (await open_store(tmp_path / "m.db")).close()
    topic_id = "11111111-1111-4111-8111-111111111111"
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as connection:
        connection.execute("INSERT INTO topics VALUES (?, 'orders', 2, '{}', 1)", (topic_id,))
        for number in range(2):
            connection.execute(
                "INSERT INTO partitions (topic_id, partition_id, topic) VALUES (?, ?, 'orders')", (topic_id, number)
            )
        connection.execute("INSERT INTO partition_leases VALUES ('orders', 0, ?, 0, 0, 5)", (AGENT,))
    store = await open_store(tmp_path / "m.db")
    led, free = [row.partition for row in await store.list_placements()]
    assert [row.wal_agent_id for row in await store.list_placements()] == [AGENT, ""]
    refused, granted = await store.acquire_leases(OTHER, [led, free], TTL_MS)
    assert refused is None
    assert granted is not None
    assert (await acquire(store, led)).epoch == 6
    await store.close()


async def test_a_closed_store_says_so_and_may_be_closed_again(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "m.db")
    await store.close()
    await store.close()
    with pytest.raises(MetadataUnavailable):
        await store.list_topics()
