"""Partitions and their leases in SQLite, as a transaction that changes them finds them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from uuid import UUID

from streamhouse.metadata.leadership import LedPartition
from streamhouse.model.names import TopicPartition

_FIND_LED = """
    SELECT p.log_start_offset, p.high_watermark, max(p.high_watermark, p.wal_end),
        l.leader_agent_id, l.epoch, l.lease_expires_at, p.generation
    FROM partitions p LEFT JOIN partition_leases l ON l.topic = p.topic AND l.partition_id = p.partition_id
    WHERE p.topic_id = ? AND p.partition_id = ?
"""


def key_of(partition: TopicPartition) -> tuple[str, int]:
    """As its rows have it."""
    return str(partition.topic_id), partition.partition


def to_partition(topic_id: str, partition_id: int) -> TopicPartition:
    return TopicPartition(UUID(topic_id), partition_id)


def find_led(
    connection: sqlite3.Connection, partitions: Iterable[TopicPartition], now_ms: int
) -> dict[TopicPartition, LedPartition]:
    """By topic id: the lease of a topic that was made again under the same name is not found for the old one."""
    found = {}
    for partition in partitions:
        row = connection.execute(_FIND_LED, key_of(partition)).fetchone()
        if row is not None:
            log_start_offset, next_offset, durable_end, leader_agent_id, epoch, expires_at_ms, generation = row
            found[partition] = LedPartition(
                log_start_offset=log_start_offset,
                next_offset=next_offset,
                durable_end=durable_end,
                leader_agent_id=leader_agent_id,
                epoch=epoch,
                lease_is_live=expires_at_ms is not None and expires_at_ms > now_ms,
                generation=generation,
            )
    return found
