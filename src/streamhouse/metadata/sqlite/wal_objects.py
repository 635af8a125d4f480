"""Objects of the WAL and the ranges of partitions that they hold, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from uuid import UUID

from streamhouse.metadata.checks import check_count
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import find_led, key_of, to_partition
from streamhouse.metadata.wal_commits import RangeKey, check_wal_commits, judge_wal_commits
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.names import TopicPartition

_REGISTERED = """
    SELECT r.topic_id, r.partition_id, r.base_offset
    FROM wal_objects o LEFT JOIN wal_ranges r USING (object_key) WHERE o.commit_id = ?
"""
_INSERT_OBJECT = """
    INSERT INTO wal_objects (object_key, commit_id, agent_id, size_bytes, created_at) VALUES (?, ?, ?, ?, ?)
"""
_INSERT_RANGE = """
    INSERT INTO wal_ranges
        (topic_id, partition_id, epoch, base_offset, end_offset, position, size_bytes, checksum, object_key)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_LOAD = """
    SELECT r.epoch, r.base_offset, r.end_offset, r.position, r.size_bytes, r.checksum, r.object_key
    FROM wal_ranges r JOIN partitions p USING (topic_id, partition_id)
    WHERE r.topic_id = ? AND r.partition_id = ? AND r.end_offset > p.high_watermark
    ORDER BY r.base_offset
"""
# The ranges of an object stay as long as it does: by them a repeated commit is answered.
_FIND_COVERED = """
    SELECT o.object_key FROM wal_objects o
    WHERE NOT EXISTS (
        SELECT 1 FROM wal_ranges r JOIN partitions p USING (topic_id, partition_id)
        WHERE r.object_key = o.object_key AND r.end_offset > p.high_watermark
    )
    ORDER BY o.created_at, o.object_key LIMIT ?
"""


class SqliteWalObjects:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def commit_wal_objects(self, commits: Sequence[WalCommit]) -> list[list[Exception | None]]:
        check_wal_commits(commits)

        def work(connection: sqlite3.Connection) -> list[list[Exception | None]]:
            now_ms = self._database.now_ms()
            partitions = {wal_range.partition for commit in commits for wal_range in commit.ranges}
            verdict = judge_wal_commits(
                commits, find_led(connection, partitions, now_ms), _find_registered(connection, commits)
            )
            for commit in verdict.accepted:
                _insert(connection, commit, now_ms)
            connection.executemany(
                "UPDATE partitions SET wal_end = ? WHERE topic_id = ? AND partition_id = ?",
                ((end_offset, *key_of(partition)) for partition, end_offset in verdict.durable_ends.items()),
            )
            return verdict.answers

        return await self._database.write(work)

    async def load_wal_ranges(self, partitions: Sequence[TopicPartition]) -> list[list[WalRange]]:
        return await self._database.read(
            lambda connection: [_load_ranges(connection, partition) for partition in partitions]
        )

    async def retire_wal_objects(self, limit: int) -> int:
        check_count("objects", limit)

        def work(connection: sqlite3.Connection) -> int:
            keys = connection.execute(_FIND_COVERED, (limit,)).fetchall()
            connection.executemany("DELETE FROM wal_ranges WHERE object_key = ?", keys)
            connection.executemany("DELETE FROM wal_objects WHERE object_key = ?", keys)
            connection.executemany(
                "INSERT INTO garbage (object_key, unreferenced_since) VALUES (?, 0) ON CONFLICT DO NOTHING", keys
            )
            return len(keys)

        return await self._database.write(work)

    async def list_wal_object_keys(self) -> list[str]:
        def work(connection: sqlite3.Connection) -> list[str]:
            return [key for (key,) in connection.execute("SELECT object_key FROM wal_objects ORDER BY object_key")]

        return await self._database.read(work)


def _find_registered(connection: sqlite3.Connection, commits: Sequence[WalCommit]) -> dict[UUID, set[RangeKey]]:
    found = {}
    for commit in commits:
        rows = connection.execute(_REGISTERED, (str(commit.commit_id),)).fetchall()
        if rows:
            found[commit.commit_id] = {
                (to_partition(topic_id, partition_id), base_offset)
                for topic_id, partition_id, base_offset in rows
                if topic_id is not None
            }
    return found


def _insert(connection: sqlite3.Connection, commit: WalCommit, now_ms: int) -> None:
    connection.execute(
        _INSERT_OBJECT, (commit.object_key, str(commit.commit_id), commit.agent_id, commit.size_bytes, now_ms)
    )
    connection.executemany(
        _INSERT_RANGE,
        (
            (
                *key_of(wal_range.partition),
                wal_range.epoch,
                wal_range.base_offset,
                wal_range.end_offset,
                wal_range.position,
                wal_range.size_bytes,
                wal_range.checksum,
                wal_range.object_key,
            )
            for wal_range in commit.ranges
        ),
    )


def _load_ranges(connection: sqlite3.Connection, partition: TopicPartition) -> list[WalRange]:
    return [
        WalRange(
            partition=partition,
            epoch=epoch,
            base_offset=base_offset,
            end_offset=end_offset,
            position=position,
            size_bytes=size_bytes,
            checksum=checksum,
            object_key=object_key,
        )
        for epoch, base_offset, end_offset, position, size_bytes, checksum, object_key in connection.execute(
            _LOAD, key_of(partition)
        )
    ]
