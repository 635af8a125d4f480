"""Objects of the WAL and the ranges of partitions that they hold, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from streamhouse.metadata.checks import check_count
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, lock_led, to_partition
from streamhouse.metadata.wal_commits import (
    RangeKey,
    WalVerdict,
    check_wal_commits,
    judge_wal_commits,
)
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.names import TopicPartition

_REGISTERED = """
    SELECT o.commit_id, r.topic_id, r.partition_id, r.base_offset
    FROM wal_objects o LEFT JOIN wal_ranges r USING (object_key) WHERE o.commit_id = ANY($1::uuid[])
"""
# One statement: the answer to every produce waits for it.
_STORE = """
    WITH stored_objects AS (
        INSERT INTO wal_objects (object_key, commit_id, agent_id, size_bytes, created_at)
        SELECT object_key, commit_id, agent_id, size_bytes, now_ms()
        FROM unnest($1::text[], $2::uuid[], $3::text[], $4::bigint[])
            AS new (object_key, commit_id, agent_id, size_bytes)
    ), stored_ranges AS (
        INSERT INTO wal_ranges
            (topic_id, partition_id, epoch, base_offset, end_offset, position, size_bytes, checksum, object_key)
        SELECT * FROM unnest(
            $5::uuid[], $6::int[], $7::bigint[], $8::bigint[], $9::bigint[],
            $10::bigint[], $11::bigint[], $12::bigint[], $13::text[]
        )
    )
    UPDATE partitions p SET wal_end = new.wal_end
    FROM unnest($14::uuid[], $15::int[], $16::bigint[]) AS new (topic_id, partition_id, wal_end)
    WHERE p.topic_id = new.topic_id AND p.partition_id = new.partition_id
"""
_LOAD = """
    SELECT r.topic_id, r.partition_id, r.epoch, r.base_offset, r.end_offset, r.position, r.size_bytes, r.checksum,
        r.object_key
    FROM wal_ranges r
    JOIN partitions p USING (topic_id, partition_id)
    JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    WHERE r.end_offset > p.high_watermark
    ORDER BY r.base_offset
"""
# The ranges of an object stay as long as it does: by them a repeated commit is answered. What is covered stays so.
_FIND_COVERED = """
    SELECT o.object_key FROM wal_objects o
    WHERE NOT EXISTS (
        SELECT FROM wal_ranges r JOIN partitions p USING (topic_id, partition_id)
        WHERE r.object_key = o.object_key AND r.end_offset > p.high_watermark
    )
    ORDER BY o.created_at, o.object_key LIMIT $1
"""
# A deletion of the topic goes through the same ranges, in an order of its own: it comes before us or after us.
_HOLD_PARTITIONS_OF = """
    SELECT FROM partitions WHERE (topic_id, partition_id) IN (
        SELECT topic_id, partition_id FROM wal_ranges WHERE object_key = ANY($1::text[])
    )
    ORDER BY topic_id, partition_id FOR KEY SHARE
"""
# What another agent is retiring now is its own.
_LOCK_OBJECTS = """
    SELECT object_key FROM wal_objects WHERE object_key = ANY($1::text[])
    ORDER BY object_key FOR UPDATE SKIP LOCKED
"""
_RETIRE = """
    INSERT INTO garbage (object_key, unreferenced_since)
    SELECT object_key, 0 FROM unnest($1::text[]) AS object_key ON CONFLICT DO NOTHING
"""


class PostgresWalObjects:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def commit_wal_objects(self, commits: Sequence[WalCommit]) -> list[list[Exception | None]]:
        """When the answer to COMMIT is lost this runs again: it waits for the locks of the first one, if that is still
        under way, and only then looks for the commit ids, so it sees what became of it."""
        check_wal_commits(commits)

        async def work(connection: Connection) -> list[list[Exception | None]]:
            led = await lock_led(connection, {item.partition for commit in commits for item in commit.ranges})
            verdict = judge_wal_commits(commits, led, await _find_registered(connection, commits))
            if verdict.accepted:
                await connection.execute(_STORE, *_columns(verdict))
            return verdict.answers

        return await self._database.transact(work)

    async def load_wal_ranges(self, partitions: Sequence[TopicPartition]) -> list[list[WalRange]]:
        async def work(connection: Connection) -> list[list[WalRange]]:
            found: dict[TopicPartition, list[WalRange]] = {partition: [] for partition in partitions}
            for row in await connection.fetch(_LOAD, *columns(found)):
                found[to_partition(row)].append(_to_range(row))
            return [found[partition] for partition in partitions]

        return await self._database.transact(work)

    async def retire_wal_objects(self, limit: int) -> int:
        check_count("objects", limit)

        async def work(connection: Connection) -> int:
            covered = _keys(await connection.fetch(_FIND_COVERED, limit))
            if not covered:
                return 0
            await connection.execute(_HOLD_PARTITIONS_OF, covered)
            ours = _keys(await connection.fetch(_LOCK_OBJECTS, covered))
            await connection.execute("DELETE FROM wal_ranges WHERE object_key = ANY($1::text[])", ours)
            await connection.execute("DELETE FROM wal_objects WHERE object_key = ANY($1::text[])", ours)
            await connection.execute(_RETIRE, ours)
            return len(ours)

        return await self._database.transact(work)

    async def list_wal_object_keys(self) -> list[str]:
        async def work(connection: Connection) -> list[str]:
            return _keys(await connection.fetch('SELECT object_key FROM wal_objects ORDER BY object_key COLLATE "C"'))

        return await self._database.transact(work)


async def _find_registered(connection: Connection, commits: Sequence[WalCommit]) -> dict[UUID, set[RangeKey]]:
    found: dict[UUID, set[RangeKey]] = {}
    for row in await connection.fetch(_REGISTERED, [commit.commit_id for commit in commits]):
        accepted = found.setdefault(UUID(int=row["commit_id"].int), set())
        if row["topic_id"] is not None:
            accepted.add((to_partition(row), row["base_offset"]))
    return found


def _columns(verdict: WalVerdict) -> tuple[list[Any], ...]:
    objects = verdict.accepted
    ranges = [item for commit in objects for item in commit.ranges]
    return (
        [commit.object_key for commit in objects],
        [commit.commit_id for commit in objects],
        [commit.agent_id for commit in objects],
        [commit.size_bytes for commit in objects],
        *columns(item.partition for item in ranges),
        [item.epoch for item in ranges],
        [item.base_offset for item in ranges],
        [item.end_offset for item in ranges],
        [item.position for item in ranges],
        [item.size_bytes for item in ranges],
        [item.checksum for item in ranges],
        [item.object_key for item in ranges],
        *columns(verdict.durable_ends),
        list(verdict.durable_ends.values()),
    )


def _keys(rows: Sequence[Any]) -> list[str]:
    return [row["object_key"] for row in rows]


def _to_range(row: Any) -> WalRange:
    return WalRange(
        partition=to_partition(row),
        epoch=row["epoch"],
        base_offset=row["base_offset"],
        end_offset=row["end_offset"],
        position=row["position"],
        size_bytes=row["size_bytes"],
        checksum=row["checksum"],
        object_key=row["object_key"],
    )
