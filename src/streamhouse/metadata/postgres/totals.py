"""How much is stored and how far groups are, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from streamhouse.metadata.checks import check_count, check_text
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import to_partition
from streamhouse.metadata.totals import GroupPosition, StoredSize, StoredTopic

_ALL = "SELECT count(*) AS segments, coalesce(sum(size_bytes), 0)::bigint AS size_bytes FROM segments"
_BY_PARTITION = """
    SELECT partition_id, count(*) AS segments, sum(size_bytes)::bigint AS size_bytes
    FROM segments WHERE topic_id = $1 GROUP BY partition_id
"""
_BY_TOPIC = """
    SELECT topic_id, count(*) AS segments, sum(size_bytes)::bigint AS size_bytes, max(max_timestamp) AS newest
    FROM segments GROUP BY topic_id
"""
_OF_TOPIC = """
    SELECT group_id, topic_id, partition_id, committed_offset FROM group_offsets
    WHERE topic_id = $2 AND committed_offset >= 0 AND group_id IN (
        SELECT DISTINCT group_id COLLATE "C" AS group_id FROM group_offsets
        WHERE topic_id = $2 AND committed_offset >= 0 AND group_id COLLATE "C" > $3 ORDER BY group_id LIMIT $1
    )
    ORDER BY group_id COLLATE "C", partition_id
"""
_POSITIONS = """
    SELECT group_id, topic_id, partition_id, committed_offset FROM group_offsets WHERE committed_offset >= 0
    ORDER BY group_id COLLATE "C", topic_id, partition_id LIMIT $1
"""


class PostgresTotals:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def stored_size(self) -> StoredSize:
        async def work(connection: Connection) -> StoredSize:
            row = await connection.fetchrow(_ALL)
            return StoredSize(segment_count=row["segments"], size_bytes=row["size_bytes"])

        return await self._database.transact(work)

    async def stored_sizes(self, topic_id: UUID) -> Mapping[int, StoredSize]:
        async def work(connection: Connection) -> dict[int, StoredSize]:
            return {
                row["partition_id"]: StoredSize(segment_count=row["segments"], size_bytes=row["size_bytes"])
                for row in await connection.fetch(_BY_PARTITION, topic_id)
            }

        return await self._database.transact(work)

    async def stored_topics(self) -> Mapping[UUID, StoredTopic]:
        async def work(connection: Connection) -> dict[UUID, StoredTopic]:
            return {
                row["topic_id"]: StoredTopic(
                    size=StoredSize(segment_count=row["segments"], size_bytes=row["size_bytes"]),
                    newest_ms=row["newest"],
                )
                for row in await connection.fetch(_BY_TOPIC)
            }

        return await self._database.transact(work)

    async def list_topic_positions(
        self, topic_id: UUID, group_limit: int, *, after_group: str = ""
    ) -> list[GroupPosition]:
        return await self._positions(_OF_TOPIC, group_limit, topic_id, check_text("group id", after_group))

    async def list_group_positions(self, limit: int) -> list[GroupPosition]:
        return await self._positions(_POSITIONS, limit)

    async def _positions(self, query: str, limit: int, *more: UUID | str) -> list[GroupPosition]:
        check_count("positions", limit)

        async def work(connection: Connection) -> list[GroupPosition]:
            return [
                GroupPosition(group_id=row["group_id"], partition=to_partition(row), offset=row["committed_offset"])
                for row in await connection.fetch(query, limit, *more)
            ]

        return await self._database.transact(work)
