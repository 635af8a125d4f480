"""What a metadata store knows of logs, without what is of its own making: ids of commits and times of writing."""

from __future__ import annotations

from typing import Any

from node.storage import Storage

_FACTS = {
    "topics": "name, topic_id, partition_count, config, created_at",
    "partitions": "topic, topic_id, partition_id, log_start_offset, high_watermark, wal_end, wal_agent_id",
    "segments": "topic, topic_id, partition_id, base_offset, end_offset, record_count, size_bytes, min_timestamp,"
    " max_timestamp, epoch, object_key, checksum",
    "leader_epochs": "topic_id, partition_id, epoch, start_offset",
    "partition_leases": "topic, partition_id, epoch",
    "wal_objects": "object_key, agent_id, size_bytes",
    "wal_ranges": "topic_id, partition_id, epoch, base_offset, end_offset, position, size_bytes, checksum, object_key",
}


def facts(storage: Storage) -> dict[str, list[tuple[Any, ...]]]:
    """By table, in an order of their own."""
    return {
        table: sorted(storage.query(f"SELECT {columns} FROM {table}"), key=repr) for table, columns in _FACTS.items()
    }
