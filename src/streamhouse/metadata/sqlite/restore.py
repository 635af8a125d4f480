"""Metadata rebuilt from a bucket, written to SQLite."""

from __future__ import annotations

import json
import sqlite3
from uuid import UUID

from streamhouse.core.rebuild import RebuiltMetadata, RebuiltPartition, RebuiltTopic
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.restore import is_restored
from streamhouse.metadata.sqlite.database import Database
from streamhouse.runtime.entropy import new_uuid

_INSERT_PARTITION = """
    INSERT INTO partitions (topic_id, partition_id, topic, log_start_offset, high_watermark, wal_end, wal_agent_id,
        generation)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_SEGMENT = """
    INSERT INTO segments (topic_id, partition_id, topic, base_offset, end_offset, record_count, size_bytes,
        min_timestamp, max_timestamp, epoch, object_key, checksum, commit_id, created_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_RANGE = """
    INSERT INTO wal_ranges
        (topic_id, partition_id, epoch, base_offset, end_offset, position, size_bytes, checksum, object_key)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


class SqliteRestore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def restore(self, rebuilt: RebuiltMetadata) -> None:
        def work(connection: sqlite3.Connection) -> None:
            there = connection.execute("SELECT name, topic_id FROM topics").fetchall()
            if is_restored(rebuilt, {name for name, _ in there}, {UUID(topic_id) for _, topic_id in there}):
                return
            now_ms = self._database.now_ms()
            # Before the ranges in them.
            connection.executemany(
                "INSERT INTO wal_objects (object_key, commit_id, agent_id, size_bytes, created_at)"
                " VALUES (?, ?, ?, ?, ?)",
                (
                    (each.object_key, str(new_uuid()), each.agent_id, each.size_bytes, now_ms)
                    for each in rebuilt.wal_objects
                ),
            )
            for topic in rebuilt.topics:
                connection.execute(
                    "INSERT INTO topics (topic_id, name, partition_count, config, created_at) VALUES (?, ?, ?, ?, ?)",
                    (
                        str(topic.topic_id),
                        topic.name,
                        len(topic.partitions),
                        json.dumps(dict(topic.config)),
                        topic.created_at_ms,
                    ),
                )
                for partition in topic.partitions:
                    _insert_partition(connection, topic, partition, rebuilt.wal_agent_id, now_ms)
            connection.execute(
                "UPDATE producer_ids SET next_producer_id = max(next_producer_id, ?)", (rebuilt.next_producer_id,)
            )

        await self._database.write(work, Change.TOPICS)


def _insert_partition(
    connection: sqlite3.Connection, topic: RebuiltTopic, partition: RebuiltPartition, wal_agent_id: str, now_ms: int
) -> None:
    place = (str(topic.topic_id), partition.partition)
    connection.execute(
        _INSERT_PARTITION,
        (
            *place,
            topic.name,
            partition.log_start_offset,
            partition.next_offset,
            partition.durable_end,
            wal_agent_id,
            partition.generation,
        ),
    )
    connection.executemany(
        _INSERT_SEGMENT,
        (
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
                str(new_uuid()),
                now_ms,
            )
            for segment in partition.segments
        ),
    )
    connection.executemany(
        "INSERT INTO leader_epochs (topic_id, partition_id, epoch, start_offset) VALUES (?, ?, ?, ?)",
        ((*place, epoch, start_offset) for epoch, start_offset in partition.epochs),
    )
    connection.execute(
        "INSERT INTO partition_leases (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)"
        " VALUES (?, ?, '', 0, 0, ?)",
        (topic.name, partition.partition, partition.lease_epoch),
    )
    connection.executemany(
        _INSERT_RANGE,
        (
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
        ),
    )
