"""Metadata rebuilt from a bucket, written to PostgreSQL."""

from __future__ import annotations

import json
from uuid import UUID

from streamhouse.core.rebuild import RebuiltMetadata, RebuiltPartition, RebuiltTopic
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.restore import is_restored
from streamhouse.runtime.entropy import new_uuid

_INSERT_PARTITION = """
    INSERT INTO partitions (topic_id, partition_id, topic, log_start_offset, high_watermark, wal_end, wal_agent_id,
        generation)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
"""
_INSERT_SEGMENT = """
    INSERT INTO segments (topic_id, partition_id, topic, base_offset, end_offset, record_count, size_bytes,
        min_timestamp, max_timestamp, epoch, object_key, checksum, commit_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now_ms())
"""
_INSERT_EPOCH = "INSERT INTO leader_epochs (topic_id, partition_id, epoch, start_offset) VALUES ($1, $2, $3, $4)"
_INSERT_LEASE = """
    INSERT INTO partition_leases (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)
    VALUES ($1, $2, '', 0, 0, $3)
"""
_INSERT_RANGE = """
    INSERT INTO wal_ranges
        (topic_id, partition_id, epoch, base_offset, end_offset, position, size_bytes, checksum, object_key)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
"""
_INSERT_WAL_OBJECT = """
    INSERT INTO wal_objects (object_key, commit_id, agent_id, size_bytes, created_at) VALUES ($1, $2, $3, $4, now_ms())
"""


class PostgresRestore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def restore(self, rebuilt: RebuiltMetadata) -> None:
        async def work(connection: Connection) -> None:
            there = await connection.fetch("SELECT name, topic_id FROM topics")
            names = {row["name"] for row in there}
            if is_restored(rebuilt, names, {UUID(int=row["topic_id"].int) for row in there}):
                return
            for topic in rebuilt.topics:
                await connection.execute(
                    "INSERT INTO topics (topic_id, name, partition_count, config, created_at)"
                    " VALUES ($1, $2, $3, $4, $5)",
                    topic.topic_id,
                    topic.name,
                    len(topic.partitions),
                    json.dumps(dict(topic.config)),
                    topic.created_at_ms,
                )
            # Before the ranges in them.
            await connection.executemany(
                _INSERT_WAL_OBJECT,
                [(each.object_key, new_uuid(), each.agent_id, each.size_bytes) for each in rebuilt.wal_objects],
            )
            for topic in rebuilt.topics:
                for partition in topic.partitions:
                    await _insert_partition(connection, topic, partition, rebuilt.wal_agent_id)
            await connection.execute(
                "UPDATE producer_ids SET next_producer_id = greatest(next_producer_id, $1)", rebuilt.next_producer_id
            )

        await self._database.transact(work)


async def _insert_partition(
    connection: Connection, topic: RebuiltTopic, partition: RebuiltPartition, wal_agent_id: str
) -> None:
    place = (topic.topic_id, partition.partition)
    await connection.execute(
        _INSERT_PARTITION,
        *place,
        topic.name,
        partition.log_start_offset,
        partition.next_offset,
        partition.durable_end,
        wal_agent_id,
        partition.generation,
    )
    await connection.executemany(
        _INSERT_SEGMENT,
        [
            (
                *place,
                topic.name,
                segment.base_offset,
                segment.end_offset,
                segment.record_count,
                segment.size_bytes,
                segment.min_timestamp_ms,
                segment.max_timestamp_ms,
                segment.epoch,
                segment.object_key,
                segment.checksum,
                new_uuid(),
            )
            for segment in partition.segments
        ],
    )
    await connection.executemany(_INSERT_EPOCH, [(*place, *epoch) for epoch in partition.epochs])
    await connection.execute(_INSERT_LEASE, topic.name, partition.partition, partition.lease_epoch)
    await connection.executemany(
        _INSERT_RANGE,
        [
            (
                *place,
                each.epoch,
                each.base_offset,
                each.end_offset,
                each.position,
                each.size_bytes,
                each.checksum,
                each.object_key,
            )
            for each in partition.ranges
        ],
    )
