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
    SELECT p.topic_id, p.partition_id, p.topic, p.log_start_offset, p.high_watermark,
        greatest(p.high_watermark, p.wal_end) AS durable_end, p.wal_agent_id, p.generation
    FROM partitions p
    JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    ORDER BY p.topic_id, p.partition_id FOR NO KEY UPDATE OF p
"""
_FIND_LEASES = """
    SELECT l.topic, l.partition_id, l.leader_agent_id, l.epoch, l.lease_expires_at > now_ms() AS is_live
    FROM partition_leases l
    JOIN unnest($1::text[], $2::int[]) AS asked (topic, partition_id) USING (topic, partition_id)
    ORDER BY l.topic, l.partition_id
"""
# A takeover waits until we are done, or we until it is done and then see the new epoch.
_HOLD_LEASES = f"{_FIND_LEASES} FOR SHARE OF l"
_LOCK_LEASES = f"{_FIND_LEASES} FOR NO KEY UPDATE OF l"


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


async def lock_partitions(connection: Connection, partitions: Iterable[TopicPartition]) -> list[Any]:
    """The rows of those that exist; nobody else changes them before this transaction ends."""
    rows: list[Any] = await connection.fetch(_LOCK_PARTITIONS, *columns(set(partitions)))
    return rows


async def lock_led(
    connection: Connection, partitions: Iterable[TopicPartition], *, to_hand_over: bool = False
) -> dict[TopicPartition, LedPartition]:
    """Those that exist, with their leases; nobody else changes either before this transaction ends. It may change the
    leases itself only if it is `to_hand_over`."""
    found = await lock_partitions(connection, partitions)
    rows = await connection.fetch(
        _LOCK_LEASES if to_hand_over else _HOLD_LEASES,
        [row["topic"] for row in found],
        [row["partition_id"] for row in found],
    )
    leases = {(row["topic"], row["partition_id"]): row for row in rows}
    return {to_partition(row): _to_led(row, leases.get((row["topic"], row["partition_id"]))) for row in found}


def _to_led(row: Any, lease: Any) -> LedPartition:
    return LedPartition(
        log_start_offset=row["log_start_offset"],
        next_offset=row["high_watermark"],
        durable_end=row["durable_end"],
        leader_agent_id=lease and lease["leader_agent_id"],
        epoch=lease and lease["epoch"],
        lease_is_live=lease is not None and lease["is_live"],
        generation=row["generation"],
    )
