"""How much is stored and how far groups are, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from uuid import UUID

from streamhouse.metadata.checks import check_count, check_text
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import to_partition
from streamhouse.metadata.totals import GroupPosition, StoredSize, StoredTopic

_BY_PARTITION = "SELECT partition_id, count(*), sum(size_bytes) FROM segments WHERE topic_id = ? GROUP BY partition_id"
_BY_TOPIC = "SELECT topic_id, count(*), sum(size_bytes), max(max_timestamp) FROM segments GROUP BY topic_id"
_OF_TOPIC = """
    SELECT group_id, topic_id, partition_id, committed_offset FROM group_offsets
    WHERE topic_id = ?2 AND committed_offset >= 0 AND group_id IN (
        SELECT DISTINCT group_id FROM group_offsets
        WHERE topic_id = ?2 AND committed_offset >= 0 AND group_id > ?3 ORDER BY group_id LIMIT ?1
    )
    ORDER BY group_id, partition_id
"""
_POSITIONS = """
    SELECT group_id, topic_id, partition_id, committed_offset FROM group_offsets WHERE committed_offset >= 0
    ORDER BY group_id, topic_id, partition_id LIMIT ?
"""


class SqliteTotals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def stored_size(self) -> StoredSize:
        def work(connection: sqlite3.Connection) -> StoredSize:
            count, size_bytes = connection.execute("SELECT count(*), sum(size_bytes) FROM segments").fetchone()
            return StoredSize(segment_count=count, size_bytes=size_bytes or 0)

        return await self._database.read(work)

    async def stored_sizes(self, topic_id: UUID) -> Mapping[int, StoredSize]:
        def work(connection: sqlite3.Connection) -> dict[int, StoredSize]:
            return {
                partition: StoredSize(segment_count=count, size_bytes=size_bytes)
                for partition, count, size_bytes in connection.execute(_BY_PARTITION, (str(topic_id),))
            }

        return await self._database.read(work)

    async def stored_topics(self) -> Mapping[UUID, StoredTopic]:
        def work(connection: sqlite3.Connection) -> dict[UUID, StoredTopic]:
            return {
                UUID(topic_id): StoredTopic(
                    size=StoredSize(segment_count=count, size_bytes=size_bytes), newest_ms=newest
                )
                for topic_id, count, size_bytes, newest in connection.execute(_BY_TOPIC)
            }

        return await self._database.read(work)

    async def list_topic_positions(
        self, topic_id: UUID, group_limit: int, *, after_group: str = ""
    ) -> list[GroupPosition]:
        return await self._positions(_OF_TOPIC, group_limit, str(topic_id), check_text("group id", after_group))

    async def list_group_positions(self, limit: int) -> list[GroupPosition]:
        return await self._positions(_POSITIONS, limit)

    async def _positions(self, query: str, limit: int, *more: str) -> list[GroupPosition]:
        check_count("positions", limit)

        def work(connection: sqlite3.Connection) -> list[GroupPosition]:
            return [
                GroupPosition(group_id=group_id, partition=to_partition(topic_id, partition_id), offset=offset)
                for group_id, topic_id, partition_id, offset in connection.execute(query, (limit, *more))
            ]

        return await self._database.read(work)
