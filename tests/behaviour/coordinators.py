"""What the suites about coordinators and groups share: leases of shards, rows of groups, time, and rivals."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import asyncpg

from behaviour.metadata_stores import AGENT, TTL_MS, MetadataStoreKind, PostgresKind, SqliteKind
from streamhouse.core.placement.shards import shard_of
from streamhouse.metadata.groups import CommittedOffset, GroupRow, ShardLease
from streamhouse.metadata.store import MetadataStore

GROUP = "g"


async def acquire_shard(store: MetadataStore, shard: int, agent_id: str = AGENT) -> ShardLease:
    (lease,) = await store.acquire_shards(agent_id, [shard], TTL_MS)
    assert lease is not None
    return lease


async def coordinate(store: MetadataStore, group_id: str = GROUP, agent_id: str = AGENT) -> ShardLease:
    """Become the coordinator of a group."""
    return await acquire_shard(store, shard_of(group_id), agent_id)


def group(group_id: str = GROUP, *, generation: int = 1, **changes: Any) -> GroupRow:
    """A classic group that has members."""
    values = {"protocol": "classic", "protocol_type": "consumer", "state": b"", "empty_since_ms": None, **changes}
    return GroupRow(group_id=group_id, generation=generation, **values)


def at(offset: int, metadata: str = "", leader_epoch: int = 1) -> CommittedOffset:
    return CommittedOffset(offset=offset, leader_epoch=leader_epoch, metadata=metadata)


def names_in_shard(shard: int, count: int) -> list[str]:
    """Ids of different groups that have one coordinator."""
    names: list[str] = []
    number = 0
    while len(names) < count:
        if shard_of(f"group-{number}") == shard:
            names.append(f"group-{number}")
        number += 1
    return names


async def pass_time(kind: MetadataStoreKind, duration_ms: int) -> None:
    await kind.pass_time(duration_ms)
    if isinstance(kind, PostgresKind):
        for table, column in (
            ("coordinator_leases", "lease_expires_at"),
            ("coordinator_leases", "claim_expires_at"),
            ("consumer_groups", "empty_since"),
            ("group_offsets", "committed_at"),
        ):
            await kind.query(f"UPDATE {table} SET {column} = {column} - {duration_ms} WHERE {column} > 0")


async def contents(kind: MetadataStoreKind) -> list[Sequence[tuple[Any, ...]]]:
    """All that is stored about groups."""
    return [
        await kind.query("SELECT * FROM consumer_groups ORDER BY group_id"),
        await kind.query("SELECT * FROM group_offsets ORDER BY group_id, topic_id, partition_id"),
    ]


@asynccontextmanager
async def rival(kind: MetadataStoreKind, *statements: str, end: str = "COMMIT") -> AsyncIterator[None]:
    """Another process that has done this in a transaction, and ends it when we leave."""
    if isinstance(kind, SqliteKind):
        with closing(sqlite3.connect(kind._path, isolation_level=None)) as file:
            for statement in ("BEGIN IMMEDIATE", *statements):
                file.execute(statement)
            yield
            file.execute(end)
        return
    assert isinstance(kind, PostgresKind)
    connection = await asyncpg.connect(kind._dsn)
    try:
        for statement in ("BEGIN", *statements):
            await connection.execute(statement)
        yield
        await connection.execute(end)
    finally:
        await connection.close()


async def until_waiting(kind: MetadataStoreKind, *tasks: asyncio.Task[Any]) -> None:
    """Until each of these waits for a lock. In SQLite, where all writers wait for the one that is, there is nothing to
    see: they come after it."""
    if isinstance(kind, PostgresKind):
        # One that has been given its lock and was not yet woken up still has a wait event, and nobody that blocks it.
        waiting = """
            SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0
        """
        while len(await kind.query(waiting)) < len(tasks):
            assert not any(task.done() for task in tasks), "it did not wait"
    assert not any(task.done() for task in tasks), "it did not wait"
