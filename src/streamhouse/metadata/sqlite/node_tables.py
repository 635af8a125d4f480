"""What is asked of a node's database from outside: topics, where their segments are, and what groups have committed."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple
from uuid import UUID


class TopicRow(NamedTuple):
    name: str
    topic_id: UUID
    partition_count: int


class StoredRange(NamedTuple):
    """The offsets of a partition that are in segments; what is newer is in its leader's write-ahead log."""

    log_start_offset: int
    stored_end: int


def topics(connection: sqlite3.Connection) -> list[TopicRow]:
    rows = connection.execute("SELECT name, topic_id, partition_count FROM topics ORDER BY name")
    return [TopicRow(name, UUID(topic_id), count) for name, topic_id, count in rows]


def stored_range(connection: sqlite3.Connection, topic_id: UUID, partition: int) -> StoredRange | None:
    row = connection.execute(
        "SELECT log_start_offset, high_watermark FROM partitions WHERE topic_id = ? AND partition_id = ?",
        (str(topic_id), partition),
    ).fetchone()
    return None if row is None else StoredRange(*row)


def segment_keys(connection: sqlite3.Connection, topic_id: UUID, partition: int) -> list[str]:
    """Of the objects that hold the partition, in the order of their offsets."""
    rows = connection.execute(
        "SELECT object_key FROM segments WHERE topic_id = ? AND partition_id = ? ORDER BY base_offset",
        (str(topic_id), partition),
    )
    return [key for (key,) in rows]


def segment_key_at(connection: sqlite3.Connection, topic_id: UUID, partition: int, offset: int) -> str | None:
    """Of the object that holds the offset; None if none does, or if what it holds there was deleted."""
    row = connection.execute(
        """SELECT object_key FROM segments JOIN partitions USING (topic_id, partition_id)
        WHERE topic_id = ? AND partition_id = ? AND base_offset <= ? AND end_offset > ? AND log_start_offset <= ?""",
        (str(topic_id), partition, offset, offset, offset),
    ).fetchone()
    return None if row is None else str(row[0])


def committed_offset(connection: sqlite3.Connection, group_id: str, topic: str, partition: int) -> int | None:
    row = connection.execute(
        """SELECT committed_offset FROM group_offsets JOIN topics USING (topic_id)
        WHERE group_id = ? AND name = ? AND partition_id = ?""",
        (group_id, topic, partition),
    ).fetchone()
    return None if row is None else int(row[0])


def committed_offsets(connection: sqlite3.Connection, group_id: str) -> dict[tuple[str, int], int]:
    rows = connection.execute(
        """SELECT name, partition_id, committed_offset FROM group_offsets JOIN topics USING (topic_id)
        WHERE group_id = ? AND committed_offset >= 0 ORDER BY name, partition_id""",
        (group_id,),
    )
    return {(topic, partition): offset for topic, partition, offset in rows}
