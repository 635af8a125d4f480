"""Consumer groups and their offsets in SQLite, each change under the lease of the group's shard."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from streamhouse.core.placement.shards import shard_of
from streamhouse.metadata.coordination import (
    check_covered,
    check_group,
    check_retention,
    check_shards,
    generation_went_back,
    judge_offsets,
    judge_partitions,
    require_generation,
    require_group,
)
from streamhouse.metadata.groups import CommittedOffset, GroupRow, ShardLease
from streamhouse.metadata.sqlite.coordinators import require_lease
from streamhouse.metadata.sqlite.database import Database
from streamhouse.model.names import TopicPartition

_SAVE = """
    INSERT INTO consumer_groups (group_id, shard, protocol, protocol_type, generation, state, empty_since)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (group_id) DO UPDATE SET
        shard = excluded.shard, protocol = excluded.protocol, protocol_type = excluded.protocol_type,
        generation = excluded.generation, state = excluded.state, empty_since = excluded.empty_since
    WHERE generation <= excluded.generation
"""
_CREATE_SIMPLE = """
    INSERT INTO consumer_groups (group_id, shard, protocol, protocol_type, generation, state, empty_since)
    VALUES (?, ?, '', '', 0, x'', ?) ON CONFLICT DO NOTHING
"""
_COMMIT = """
    INSERT INTO group_offsets
        (group_id, topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (group_id, topic_id, partition_id) DO UPDATE SET
        committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
        metadata = excluded.metadata, committed_at = excluded.committed_at
"""
_FETCH = """
    SELECT topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at
    FROM group_offsets WHERE group_id = ? ORDER BY topic_id, partition_id
"""
_EXPIRE_OFFSETS = """
    DELETE FROM group_offsets WHERE committed_at <= :until AND group_id IN (
        SELECT group_id FROM consumer_groups
        WHERE shard = :shard AND (empty_since <= :until OR (empty_since IS NULL AND protocol = ''))
    )
"""
_EXPIRE_GROUPS = """
    DELETE FROM consumer_groups
    WHERE shard = :shard AND (empty_since <= :until OR (empty_since IS NULL AND protocol = ''))
    AND NOT EXISTS (SELECT 1 FROM group_offsets o WHERE o.group_id = consumer_groups.group_id)
"""


class SqliteGroups:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_groups(self, shard: int) -> list[GroupRow]:
        check_shards([shard])

        def work(connection: sqlite3.Connection) -> list[GroupRow]:
            _place_groups(connection)
            rows = connection.execute(
                "SELECT group_id, protocol, protocol_type, generation, state, empty_since"
                " FROM consumer_groups WHERE shard = ? ORDER BY group_id",
                (shard,),
            )
            return [_to_group(row) for row in rows]

        return await self._database.write(work)

    async def list_groups(self) -> list[GroupRow]:
        def work(connection: sqlite3.Connection) -> list[GroupRow]:
            rows = connection.execute(
                "SELECT group_id, protocol, protocol_type, generation, x'', empty_since"
                " FROM consumer_groups ORDER BY group_id"
            )
            return [_to_group(row) for row in rows]

        return await self._database.read(work)

    async def save_group(self, lease: ShardLease, row: GroupRow) -> None:
        check_group(lease, row)

        def work(connection: sqlite3.Connection) -> None:
            require_lease(connection, lease, self._database.now_ms())
            values = (
                row.group_id,
                lease.shard,
                row.protocol,
                row.protocol_type,
                row.generation,
                row.state,
                row.empty_since_ms,
            )
            if not connection.execute(_SAVE, values).rowcount:
                raise generation_went_back(row)

        await self._database.write(work)

    async def delete_group(self, lease: ShardLease, group_id: str) -> None:
        check_covered(lease, group_id)

        def work(connection: sqlite3.Connection) -> None:
            require_lease(connection, lease, self._database.now_ms())
            deleted = connection.execute("DELETE FROM consumer_groups WHERE group_id = ?", (group_id,)).rowcount
            require_group(group_id, deleted)
            connection.execute("DELETE FROM group_offsets WHERE group_id = ?", (group_id,))

        await self._database.write(work)

    async def commit_group_offsets(
        self,
        lease: ShardLease,
        group_id: str,
        expected_generation: int | None,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, Exception | None]:
        check_covered(lease, group_id)

        def work(connection: sqlite3.Connection) -> dict[TopicPartition, Exception | None]:
            now_ms = self._database.now_ms()
            require_lease(connection, lease, now_ms)
            require_generation(group_id, _find_generation(connection, group_id), expected_generation)
            answers = judge_offsets(offsets, _find_partitions(connection, offsets))
            good = [partition for partition, problem in answers.items() if problem is None]
            if good:
                connection.execute(_CREATE_SIMPLE, (group_id, lease.shard, now_ms))
            connection.executemany(
                _COMMIT, (_offset_values(group_id, partition, offsets[partition], now_ms) for partition in good)
            )
            return answers

        return await self._database.write(work)

    async def fetch_group_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        def work(connection: sqlite3.Connection) -> dict[TopicPartition, CommittedOffset]:
            return {
                TopicPartition(UUID(topic_id), partition): CommittedOffset(
                    offset=offset, leader_epoch=leader_epoch, metadata=metadata, committed_at_ms=committed_at
                )
                for topic_id, partition, offset, leader_epoch, metadata, committed_at in connection.execute(
                    _FETCH, (group_id,)
                )
            }

        return await self._database.read(work)

    async def delete_group_offsets(
        self, lease: ShardLease, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Exception | None]:
        check_covered(lease, group_id)

        def work(connection: sqlite3.Connection) -> dict[TopicPartition, Exception | None]:
            require_lease(connection, lease, self._database.now_ms())
            require_group(group_id, _find_generation(connection, group_id) is not None)
            connection.executemany(
                "DELETE FROM group_offsets WHERE group_id = ? AND topic_id = ? AND partition_id = ?",
                ((group_id, *_key(partition)) for partition in partitions),
            )
            return judge_partitions(partitions, _find_partitions(connection, partitions))

        return await self._database.write(work)

    async def expire_group_offsets(self, lease: ShardLease, retention_ms: int) -> int:
        check_retention(retention_ms)

        def work(connection: sqlite3.Connection) -> int:
            now_ms = self._database.now_ms()
            require_lease(connection, lease, now_ms)
            values = {"shard": lease.shard, "until": now_ms - retention_ms}
            expired = connection.execute(_EXPIRE_OFFSETS, values).rowcount
            connection.execute(_EXPIRE_GROUPS, values)
            return expired

        return await self._database.write(work)


def _place_groups(connection: sqlite3.Connection) -> None:
    """Those that a migration found in a database from before groups had shards, which SQL cannot compute."""
    found = connection.execute("SELECT group_id FROM consumer_groups WHERE shard IS NULL").fetchall()
    connection.executemany(
        "UPDATE consumer_groups SET shard = ? WHERE group_id = ?",
        ((shard_of(group_id), group_id) for (group_id,) in found),
    )


def _find_generation(connection: sqlite3.Connection, group_id: str) -> int | None:
    row = connection.execute("SELECT generation FROM consumer_groups WHERE group_id = ?", (group_id,)).fetchone()
    return None if row is None else int(row[0])


def _find_partitions(connection: sqlite3.Connection, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    return {
        partition
        for partition in partitions
        if connection.execute(
            "SELECT 1 FROM partitions WHERE topic_id = ? AND partition_id = ?", _key(partition)
        ).fetchone()
    }


def _offset_values(
    group_id: str, partition: TopicPartition, offset: CommittedOffset, now_ms: int
) -> tuple[str | int, ...]:
    return group_id, *_key(partition), offset.offset, offset.leader_epoch, offset.metadata, now_ms


def _to_group(row: tuple[str, str, str, int, bytes, int | None]) -> GroupRow:
    group_id, protocol, protocol_type, generation, state, empty_since_ms = row
    return GroupRow(
        group_id=group_id,
        protocol=protocol,
        protocol_type=protocol_type,
        generation=generation,
        state=state,
        empty_since_ms=empty_since_ms,
    )


def _key(partition: TopicPartition) -> tuple[str, int]:
    return str(partition.topic_id), partition.partition
