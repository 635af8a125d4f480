"""Committed segments, the partitions they advance, and their garbage, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any
from uuid import UUID

from streamhouse.metadata.checks import check_commits, check_count, check_offset
from streamhouse.metadata.leadership import is_leader, judge_commits, require_forward, require_leader
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, lock_led, to_partition
from streamhouse.metadata.store import EpochStart, PartitionRow, SegmentCommit, SegmentRow
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition

_LOAD_PARTITIONS = """
    SELECT p.topic_id, p.partition_id, p.topic, p.log_start_offset, p.high_watermark,
        greatest(p.high_watermark, p.wal_end) AS durable_end, p.producer_state, p.replacements,
        coalesce(history.epochs, '{}') AS epochs, coalesce(history.starts, '{}') AS starts
    FROM partitions p
    JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    LEFT JOIN LATERAL (
        SELECT array_agg(e.epoch ORDER BY e.epoch) AS epochs, array_agg(e.start_offset ORDER BY e.epoch) AS starts
        FROM leader_epochs e WHERE e.topic_id = p.topic_id AND e.partition_id = p.partition_id
    ) AS history ON true
"""
_LOAD_SEGMENTS = """
    SELECT topic_id, partition_id, base_offset, end_offset, record_count, size_bytes, min_timestamp, max_timestamp,
        epoch, object_key, checksum, created_at
    FROM segments JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    WHERE $3::text[] IS NULL OR object_key = ANY($3)
    ORDER BY base_offset
"""
_INSERT_SEGMENTS = """
    INSERT INTO segments (topic_id, partition_id, topic, base_offset, end_offset, record_count, size_bytes,
        min_timestamp, max_timestamp, epoch, object_key, checksum, commit_id, created_at)
    SELECT p.topic_id, p.partition_id, p.topic, new.base_offset, new.end_offset, new.record_count, new.size_bytes,
        new.min_timestamp, new.max_timestamp, new.epoch, new.object_key, new.checksum, new.commit_id, now_ms()
    FROM unnest(
        $1::uuid[], $2::int[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
        $7::bigint[], $8::bigint[], $9::bigint[], $10::text[], $11::bigint[], $12::uuid[]
    ) AS new (topic_id, partition_id, base_offset, end_offset, record_count, size_bytes,
        min_timestamp, max_timestamp, epoch, object_key, checksum, commit_id)
    JOIN partitions p USING (topic_id, partition_id)
"""
_ADVANCE_PARTITIONS = """
    UPDATE partitions p SET high_watermark = new.end_offset, producer_state = new.producer_state
    FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bytea[])
        AS new (topic_id, partition_id, end_offset, producer_state)
    WHERE p.topic_id = new.topic_id AND p.partition_id = new.partition_id
"""
_BEGIN_EPOCHS = """
    INSERT INTO leader_epochs (topic_id, partition_id, epoch, start_offset)
    SELECT * FROM unnest($1::uuid[], $2::int[], $3::bigint[], $4::bigint[]) ON CONFLICT DO NOTHING
"""
_SET_WAL_AGENTS = """
    UPDATE partitions p SET wal_agent_id = new.wal_agent_id
    FROM unnest($1::uuid[], $2::int[], $3::text[]) AS new (topic_id, partition_id, wal_agent_id)
    WHERE p.topic_id = new.topic_id AND p.partition_id = new.partition_id AND p.wal_agent_id <> new.wal_agent_id
"""
_DROP_SEGMENTS = """
    WITH dropped AS (
        DELETE FROM segments WHERE topic_id = $1 AND partition_id = $2 AND end_offset <= $3 RETURNING *
    ), forgotten AS (
        INSERT INTO garbage (object_key, unreferenced_since) SELECT object_key, now_ms() FROM dropped
        ON CONFLICT DO NOTHING
    )
    SELECT * FROM dropped ORDER BY base_offset
"""
# In order, as several agents may forget the same ones.
_FORGET_GARBAGE = """
    DELETE FROM garbage WHERE object_key IN (
        SELECT object_key FROM garbage WHERE object_key = ANY($1::text[]) ORDER BY object_key FOR UPDATE
    )
"""


class PostgresSegments:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_partitions(self, partitions: Sequence[TopicPartition]) -> list[PartitionRow]:
        async def work(connection: Connection) -> list[PartitionRow]:
            rows = [_to_partition(row) for row in await connection.fetch(_LOAD_PARTITIONS, *columns(set(partitions)))]
            found = {row.partition: row for row in rows}
            for partition in partitions:
                if partition not in found:
                    raise NotFound(f"no partition {partition}")
            return [found[partition] for partition in partitions]

        return await self._database.transact(work)

    async def load_segments(self, partitions: Sequence[TopicPartition]) -> list[list[SegmentRow]]:
        return await self._database.transact(lambda connection: load_segments(connection, partitions))

    async def commit_segments(self, commits: Sequence[SegmentCommit]) -> list[Exception | None]:
        """When the answer to COMMIT is lost this runs again: it waits for the locks of the first one, if that is still
        under way, and only then looks for the commit ids, so it sees what became of it."""
        check_commits(commits)

        async def work(connection: Connection) -> list[Exception | None]:
            led = await lock_led(connection, (commit.partition for commit in commits))
            known = await connection.fetch(
                "SELECT commit_id FROM segments WHERE commit_id = ANY($1::uuid[])",
                [commit.commit_id for commit in commits],
            )
            verdict = judge_commits(commits, led, {UUID(int=row["commit_id"].int) for row in known})
            if verdict.accepted:
                await insert_segments(
                    connection,
                    [(commit.partition, commit.segment, commit.commit_id) for commit in verdict.accepted],
                )
                final = verdict.final_commits()
                await connection.execute(
                    _ADVANCE_PARTITIONS,
                    *columns(commit.partition for commit in final),
                    [commit.segment.end_offset for commit in final],
                    [commit.producer_state for commit in final],
                )
            return verdict.answers

        return await self._database.transact(work)

    async def begin_epochs(self, agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
        for start in starts:
            check_offset(start.offset)

        async def work(connection: Connection) -> list[bool]:
            led = await lock_led(connection, (start.lease.partition for start in starts))
            is_ours = [is_leader(led.get(start.lease.partition), agent_id, start.lease.epoch) for start in starts]
            ours = list(compress(starts, is_ours))
            await connection.execute(
                _BEGIN_EPOCHS,
                *columns(start.lease.partition for start in ours),
                [start.lease.epoch for start in ours],
                [start.offset for start in ours],
            )
            wal_agents = {start.lease.partition: agent_id if start.in_local_wal else "" for start in ours}
            await connection.execute(_SET_WAL_AGENTS, *columns(wal_agents), list(wal_agents.values()))
            return is_ours

        return await self._database.transact(work)

    async def advance_log_start(
        self, partition: TopicPartition, agent_id: str, epoch: int, log_start_offset: int
    ) -> list[SegmentRow]:
        async def work(connection: Connection) -> list[SegmentRow]:
            led = (await lock_led(connection, [partition])).get(partition)
            require_forward(require_leader(led, partition, agent_id, epoch), partition, log_start_offset)
            dropped = await connection.fetch(_DROP_SEGMENTS, partition.topic_id, partition.partition, log_start_offset)
            await connection.execute(
                "UPDATE partitions SET log_start_offset = $3 WHERE topic_id = $1 AND partition_id = $2",
                partition.topic_id,
                partition.partition,
                log_start_offset,
            )
            return [_to_segment(row) for row in dropped]

        return await self._database.transact(work)

    async def list_garbage(self, older_than_ms: int, limit: int) -> list[str]:
        check_count("keys", limit)

        async def work(connection: Connection) -> list[str]:
            rows = await connection.fetch(
                "SELECT object_key FROM garbage WHERE unreferenced_since <= now_ms() - $1::bigint"
                " ORDER BY unreferenced_since, object_key LIMIT $2",
                older_than_ms,
                limit,
            )
            return [row["object_key"] for row in rows]

        return await self._database.transact(work)

    async def forget_garbage(self, keys: Sequence[str]) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(_FORGET_GARBAGE, list(keys))

        await self._database.transact(work)


async def load_segments(
    connection: Connection, partitions: Sequence[TopicPartition], keys: Sequence[str] | None = None
) -> list[list[SegmentRow]]:
    """In the order asked, each by base offset; with `keys`, those of them that are there."""
    found: dict[TopicPartition, list[SegmentRow]] = {partition: [] for partition in partitions}
    for row in await connection.fetch(_LOAD_SEGMENTS, *columns(found), keys):
        found[to_partition(row)].append(_to_segment(row))
    return [found[partition] for partition in partitions]


async def insert_segments(connection: Connection, added: Sequence[tuple[TopicPartition, SegmentRow, UUID]]) -> None:
    """Each with its commit id."""
    segments = [segment for _, segment, _ in added]
    await connection.execute(
        _INSERT_SEGMENTS,
        *columns(partition for partition, _, _ in added),
        [segment.base_offset for segment in segments],
        [segment.end_offset for segment in segments],
        [segment.record_count for segment in segments],
        [segment.size_bytes for segment in segments],
        [segment.min_timestamp_ms for segment in segments],
        [segment.max_timestamp_ms for segment in segments],
        [segment.epoch for segment in segments],
        [segment.object_key for segment in segments],
        [segment.checksum for segment in segments],
        [commit_id for _, _, commit_id in added],
    )


def _to_partition(row: Any) -> PartitionRow:
    return PartitionRow(
        topic=row["topic"],
        partition=to_partition(row),
        log_start_offset=row["log_start_offset"],
        next_offset=row["high_watermark"],
        durable_end=row["durable_end"],
        producer_state=row["producer_state"],
        epochs=tuple(zip(row["epochs"], row["starts"], strict=True)),
        replacements=row["replacements"],
    )


def _to_segment(row: Any) -> SegmentRow:
    return SegmentRow(
        base_offset=row["base_offset"],
        end_offset=row["end_offset"],
        record_count=row["record_count"],
        size_bytes=row["size_bytes"],
        min_timestamp_ms=row["min_timestamp"],
        max_timestamp_ms=row["max_timestamp"],
        epoch=row["epoch"],
        object_key=row["object_key"],
        checksum=row["checksum"],
        created_at_ms=row["created_at"],
    )
