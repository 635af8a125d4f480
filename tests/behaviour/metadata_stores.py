"""The metadata stores that the suite runs over, and what a test needs beside them: time that passes, raw rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID, uuid4

import asyncpg

from services.clock import ManualClock
from services.seams import postgres_seams, sqlite_seams
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import EpochStart, Lease, MetadataStore, SegmentCommit, SegmentRow
from streamhouse.model.names import TopicPartition

AGENT = "agent-1"
OTHER = "agent-2"
TTL_MS = 30_000


class MetadataStoreKind(Protocol):
    async def open(self) -> MetadataStore:
        """A store over the same database each time, as another process would have it."""

    async def pass_time(self, duration_ms: int) -> None:
        """For the database, without waiting."""

    async def query(self, sql: str) -> Sequence[tuple[Any, ...]]:
        """Behind the store's back."""

    async def find_seams(self) -> Sequence[tuple[Any, ...]]:
        """Violations of I3; there are none."""


class SqliteKind:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._clock = ManualClock()

    async def open(self) -> MetadataStore:
        return await open_metadata(f"sqlite://{self._path}", self._clock)

    async def pass_time(self, duration_ms: int) -> None:
        self._clock.advance(duration_ms)

    async def query(self, sql: str) -> Sequence[tuple[Any, ...]]:
        with closing(sqlite3.connect(self._path, isolation_level=None)) as connection:
            return connection.execute(sql).fetchall()

    async def find_seams(self) -> Sequence[tuple[Any, ...]]:
        return sqlite_seams(self._path)


_TIMES = (
    ("partition_leases", "lease_expires_at"),
    ("garbage", "unreferenced_since"),
    ("agents", "last_heartbeat"),
    ("found_dead", "last_heartbeat"),
    ("agents", "started_at"),
    ("partition_transfers", "created_at"),
    ("partition_transfers", "expires_at"),
    ("segment_replacements", "replaced_at"),
    ("pins", "expires_at"),
)


class PostgresKind:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def open(self) -> MetadataStore:
        return await open_metadata(self._dsn, ManualClock())

    async def pass_time(self, duration_ms: int) -> None:
        """Its clock is the machine's, so instead of moving it forward, all that was written moves back."""
        for table, column in _TIMES:
            await self.query(f"UPDATE {table} SET {column} = {column} - {duration_ms} WHERE {column} > 0")

    async def query(self, sql: str) -> Sequence[tuple[Any, ...]]:
        connection = await asyncpg.connect(self._dsn)
        try:
            return [tuple(row) for row in await connection.fetch(sql)]
        finally:
            await connection.close()

    async def find_seams(self) -> Sequence[tuple[Any, ...]]:
        return await postgres_seams(self._dsn)


async def make_topic(store: MetadataStore, partitions: int = 1, name: str = "orders") -> list[TopicPartition]:
    topic = await store.create_topic(name, uuid4(), partitions, {})
    return [TopicPartition(topic.topic_id, number) for number in range(partitions)]


async def acquire(store: MetadataStore, partition: TopicPartition, agent_id: str = AGENT) -> Lease:
    (lease,) = await store.acquire_leases(agent_id, [partition], TTL_MS)
    assert lease is not None
    return lease


def epoch_start(lease: Lease, offset: int, *, in_local_wal: bool = False) -> EpochStart:
    return EpochStart(lease=lease, offset=offset, in_local_wal=in_local_wal)


async def segments_of(store: MetadataStore, partition: TopicPartition) -> list[SegmentRow]:
    (segments,) = await store.load_segments([partition])
    return segments


def segment_commit(
    lease: Lease, base_offset: int, end_offset: int, *, commit_id: UUID | None = None, producer_state: bytes = b""
) -> SegmentCommit:
    commit_id = commit_id or uuid4()
    return SegmentCommit(
        partition=lease.partition,
        agent_id=lease.agent_id,
        epoch=lease.epoch,
        commit_id=commit_id,
        segment=SegmentRow(
            base_offset=base_offset,
            end_offset=end_offset,
            record_count=end_offset - base_offset,
            size_bytes=1000,
            min_timestamp_ms=1,
            max_timestamp_ms=2,
            epoch=lease.epoch,
            object_key=f"segments/{lease.partition}/{commit_id}",
            checksum=2**32 - 1,
        ),
        producer_state=producer_state,
    )
