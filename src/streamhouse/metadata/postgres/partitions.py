"""Partitions and their leases in PostgreSQL, as a transaction that changes them finds them: locked, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from streamhouse.metadata.leadership import LedPartition
from streamhouse.metadata.postgres.database import Connection
from streamhouse.model.names import TopicPartition

# Against a deletion, not against a commit.
_HOLD_PARTITIONS = """
    SELECT p.topic_id, p.partition_id, p.topic
    FROM partitions p
    JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    ORDER BY p.topic_id, p.partition_id FOR KEY SHARE OF p
"""
_LOCK_PARTITIONS = """
    SELECT p.topic_id, p.partition_id, p.topic, p.log_start_offset, p.high_watermark
    FROM partitions p
    JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    ORDER BY p.topic_id, p.partition_id FOR NO KEY UPDATE OF p
"""
# A takeover waits until we are done, or we until it is done and then see the new epoch.
_LOCK_LEASES = """
    SELECT l.topic, l.partition_id, l.leader_agent_id, l.epoch, l.lease_expires_at > now_ms() AS is_live
    FROM partition_leases l
    JOIN unnest($1::text[], $2::int[]) AS asked (topic, partition_id) USING (topic, partition_id)
    ORDER BY l.topic, l.partition_id FOR SHARE OF l
"""


def columns(partitions: Iterable[TopicPartition]) -> tuple[list[UUID], list[int]]:
    """As the arrays that `unnest` takes."""
    asked = list(partitions)
    return [partition.topic_id for partition in asked], [partition.partition for partition in asked]


def to_partition(row: Any) -> TopicPartition:
    return TopicPartition(UUID(int=row["topic_id"].int), row["partition_id"])


async def hold_partitions(
    connection: Connection, partitions: Iterable[TopicPartition]
) -> dict[tuple[str, int], TopicPartition]:
    """Those that exist, by topic name and number; none of them can be deleted before this transaction ends."""
    rows = await connection.fetch(_HOLD_PARTITIONS, *columns(set(partitions)))
    return {(row["topic"], row["partition_id"]): to_partition(row) for row in rows}


async def lock_led(connection: Connection, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LedPartition]:
    """Those that exist, with their leases; nobody else changes either before this transaction ends."""
    found = await connection.fetch(_LOCK_PARTITIONS, *columns(set(partitions)))
    rows = await connection.fetch(_LOCK_LEASES, [row["topic"] for row in found], [row["partition_id"] for row in found])
    leases = {(row["topic"], row["partition_id"]): row for row in rows}
    led = {}
    for row in found:
        lease = leases.get((row["topic"], row["partition_id"]))
        led[to_partition(row)] = LedPartition(
            log_start_offset=row["log_start_offset"],
            next_offset=row["high_watermark"],
            leader_agent_id=lease and lease["leader_agent_id"],
            epoch=lease and lease["epoch"],
            lease_is_live=lease is not None and lease["is_live"],
        )
    return led
