"""Consumer groups and their offsets in PostgreSQL, each change under the lease of the group's shard.

A transaction locks the partitions, the lease, the group and then its offsets. The lock of the group is what puts a
commit either before or after a new generation, never beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from streamhouse.metadata.postgres.coordinators import hold_lease
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, hold_partitions, to_partition
from streamhouse.model.names import TopicPartition

_LOAD = """
    SELECT group_id, protocol, protocol_type, generation, state, empty_since
    FROM consumer_groups WHERE shard = $1 ORDER BY group_id COLLATE "C"
"""
_LIST = """
    SELECT group_id, protocol, protocol_type, generation, ''::bytea AS state, empty_since
    FROM consumer_groups ORDER BY group_id COLLATE "C"
"""
_SAVE = """
    INSERT INTO consumer_groups AS g (group_id, shard, protocol, protocol_type, generation, state, empty_since)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (group_id) DO UPDATE SET
        shard = excluded.shard, protocol = excluded.protocol, protocol_type = excluded.protocol_type,
        generation = excluded.generation, state = excluded.state, empty_since = excluded.empty_since
    WHERE g.generation <= excluded.generation
    RETURNING group_id
"""
_CREATE_SIMPLE = """
    INSERT INTO consumer_groups (group_id, shard, protocol, protocol_type, generation, state, empty_since)
    VALUES ($1, $2, '', '', 0, '', now_ms()) ON CONFLICT DO NOTHING
"""
_LOCK_GENERATION = "SELECT generation FROM consumer_groups WHERE group_id = $1 FOR NO KEY UPDATE"
_COMMIT = """
    INSERT INTO group_offsets (group_id, topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at)
    SELECT $1, topic_id, partition_id, committed_offset, leader_epoch, metadata, now_ms()
    FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::int[], $6::bytea[])
        AS new (topic_id, partition_id, committed_offset, leader_epoch, metadata)
    ORDER BY topic_id, partition_id
    ON CONFLICT (group_id, topic_id, partition_id) DO UPDATE SET
        committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
        metadata = excluded.metadata, committed_at = excluded.committed_at
"""
_FETCH = """
    SELECT topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at
    FROM group_offsets WHERE group_id = $1 ORDER BY topic_id, partition_id
"""
_DELETE_OFFSETS = """
    DELETE FROM group_offsets g USING unnest($2::uuid[], $3::int[]) AS asked (topic_id, partition_id)
    WHERE g.group_id = $1 AND g.topic_id = asked.topic_id AND g.partition_id = asked.partition_id
"""
# A deletion of the topic goes through the same offsets, in an order of its own: it comes before us or after us.
_HOLD_PARTITIONS_OF = """
    SELECT FROM partitions WHERE (topic_id, partition_id) IN (
        SELECT topic_id, partition_id FROM group_offsets WHERE group_id = ANY($1::text[])
    )
    ORDER BY topic_id, partition_id FOR KEY SHARE
"""
_FIND_LONG_EMPTY = """
    SELECT group_id FROM consumer_groups
    WHERE shard = $1 AND (empty_since <= $2 OR (empty_since IS NULL AND protocol = ''))
"""
_LOCK_LONG_EMPTY = """
    SELECT group_id FROM consumer_groups
    WHERE group_id = ANY($1::text[]) AND (empty_since <= $2 OR (empty_since IS NULL AND protocol = ''))
    ORDER BY group_id FOR UPDATE
"""
_EXPIRE_OFFSETS = """
    WITH expired AS (
        DELETE FROM group_offsets WHERE group_id = ANY($1::text[]) AND committed_at <= $2 RETURNING 1
    )
    SELECT count(*) FROM expired
"""
_EXPIRE_GROUPS = """
    DELETE FROM consumer_groups g WHERE g.group_id = ANY($1::text[])
    AND NOT EXISTS (SELECT FROM group_offsets o WHERE o.group_id = g.group_id)
"""


class PostgresGroups:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_groups(self, shard: int) -> list[GroupRow]:
        check_shards([shard])

        async def work(connection: Connection) -> list[GroupRow]:
            await _place_groups(connection)
            return [_to_group(row) for row in await connection.fetch(_LOAD, shard)]

        return await self._database.transact(work)

    async def list_groups(self) -> list[GroupRow]:
        async def work(connection: Connection) -> list[GroupRow]:
            return [_to_group(row) for row in await connection.fetch(_LIST)]

        return await self._database.transact(work)

    async def save_group(self, lease: ShardLease, row: GroupRow) -> None:
        check_group(lease, row)

        async def work(connection: Connection) -> None:
            await hold_lease(connection, lease)
            saved = await connection.fetchval(
                _SAVE,
                row.group_id,
                lease.shard,
                row.protocol,
                row.protocol_type,
                row.generation,
                row.state,
                row.empty_since_ms,
            )
            if saved is None:
                raise generation_went_back(row)

        await self._database.transact(work)

    async def delete_group(self, lease: ShardLease, group_id: str) -> None:
        check_covered(lease, group_id)

        async def work(connection: Connection) -> None:
            await connection.execute(_HOLD_PARTITIONS_OF, [group_id])
            await hold_lease(connection, lease)
            deleted = await connection.fetchval(
                "DELETE FROM consumer_groups WHERE group_id = $1 RETURNING group_id", group_id
            )
            require_group(group_id, deleted is not None)
            await connection.execute("DELETE FROM group_offsets WHERE group_id = $1", group_id)

        await self._database.transact(work)

    async def commit_group_offsets(
        self,
        lease: ShardLease,
        group_id: str,
        expected_generation: int | None,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, Exception | None]:
        check_covered(lease, group_id)

        async def work(connection: Connection) -> dict[TopicPartition, Exception | None]:
            existing = set((await hold_partitions(connection, offsets)).values())
            await hold_lease(connection, lease)
            answers = judge_offsets(offsets, existing)
            good = [partition for partition, problem in answers.items() if problem is None]
            generation = await connection.fetchval(_LOCK_GENERATION, group_id)
            require_generation(group_id, generation, expected_generation)
            if good and generation is None:
                await _create_simple(connection, lease, group_id)
            await connection.execute(
                _COMMIT,
                group_id,
                *columns(good),
                [offsets[partition].offset for partition in good],
                [offsets[partition].leader_epoch for partition in good],
                [offsets[partition].metadata.encode() for partition in good],
            )
            return answers

        return await self._database.transact(work)

    async def fetch_group_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        async def work(connection: Connection) -> dict[TopicPartition, CommittedOffset]:
            return {to_partition(row): _to_offset(row) for row in await connection.fetch(_FETCH, group_id)}

        return await self._database.transact(work)

    async def delete_group_offsets(
        self, lease: ShardLease, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Exception | None]:
        check_covered(lease, group_id)

        async def work(connection: Connection) -> dict[TopicPartition, Exception | None]:
            existing = set((await hold_partitions(connection, partitions)).values())
            await hold_lease(connection, lease)
            generation = await connection.fetchval(_LOCK_GENERATION, group_id)
            require_group(group_id, generation is not None)
            await connection.execute(_DELETE_OFFSETS, group_id, *columns(existing))
            return judge_partitions(partitions, existing)

        return await self._database.transact(work)

    async def expire_group_offsets(self, lease: ShardLease, retention_ms: int) -> int:
        check_retention(retention_ms)

        async def work(connection: Connection) -> int:
            until_ms = await connection.fetchval("SELECT now_ms() - $1::bigint", retention_ms)
            found = _group_ids(await connection.fetch(_FIND_LONG_EMPTY, lease.shard, until_ms))
            await connection.execute(_HOLD_PARTITIONS_OF, found)
            await hold_lease(connection, lease)
            still_empty = _group_ids(await connection.fetch(_LOCK_LONG_EMPTY, found, until_ms))
            expired = await connection.fetchval(_EXPIRE_OFFSETS, still_empty, until_ms)
            await connection.execute(_EXPIRE_GROUPS, still_empty)
            return int(expired)

        return await self._database.transact(work)


async def _create_simple(connection: Connection, lease: ShardLease, group_id: str) -> None:
    """And lock it: another may have made it first, and even have deleted it again."""
    generation = None
    while generation is None:
        await connection.execute(_CREATE_SIMPLE, group_id, lease.shard)
        generation = await connection.fetchval(_LOCK_GENERATION, group_id)


async def _place_groups(connection: Connection) -> None:
    """Those that a migration found in a database from before groups had shards, which SQL cannot compute."""
    found = _group_ids(
        await connection.fetch(
            "SELECT group_id FROM consumer_groups WHERE shard IS NULL ORDER BY group_id FOR NO KEY UPDATE"
        )
    )
    if found:
        await connection.execute(
            "UPDATE consumer_groups g SET shard = placed.shard"
            " FROM unnest($1::text[], $2::int[]) AS placed (group_id, shard) WHERE g.group_id = placed.group_id",
            found,
            [shard_of(group_id) for group_id in found],
        )


def _group_ids(rows: Sequence[Any]) -> list[str]:
    return [row["group_id"] for row in rows]


def _to_offset(row: Any) -> CommittedOffset:
    return CommittedOffset(
        offset=row["committed_offset"],
        leader_epoch=row["leader_epoch"],
        metadata=row["metadata"].decode(),
        committed_at_ms=row["committed_at"],
    )


def _to_group(row: Any) -> GroupRow:
    return GroupRow(
        group_id=row["group_id"],
        protocol=row["protocol"],
        protocol_type=row["protocol_type"],
        generation=row["generation"],
        state=row["state"],
        empty_since_ms=row["empty_since"],
    )
