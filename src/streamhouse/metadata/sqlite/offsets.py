"""Group offsets in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from uuid import UUID

from streamhouse.metadata.checks import check_committed_offset, check_text
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.store import CommittedOffset
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.names import TopicPartition


class SqliteGroupOffsets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def commit_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, Exception | None]:
        check_text("group id", group_id)

        def work(connection: sqlite3.Connection) -> dict[TopicPartition, Exception | None]:
            now_ms = self._database.now_ms()
            return {
                partition: _commit_offset(connection, group_id, partition, offset, now_ms)
                for partition, offset in offsets.items()
            }

        return await self._database.write(work)

    async def fetch_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        def work(connection: sqlite3.Connection) -> dict[TopicPartition, CommittedOffset]:
            rows = connection.execute(
                "SELECT topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at"
                " FROM group_offsets WHERE group_id = ? ORDER BY topic_id, partition_id",
                (group_id,),
            )
            return {
                TopicPartition(UUID(topic_id), partition): CommittedOffset(
                    offset=offset, leader_epoch=leader_epoch, metadata=metadata, committed_at_ms=committed_at
                )
                for topic_id, partition, offset, leader_epoch, metadata, committed_at in rows
            }

        return await self._database.read(work)

    async def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                "DELETE FROM group_offsets WHERE group_id = ? AND topic_id = ? AND partition_id = ?",
                ((group_id, str(partition.topic_id), partition.partition) for partition in partitions),
            )

        await self._database.write(work)


def _commit_offset(
    connection: sqlite3.Connection, group_id: str, partition: TopicPartition, offset: CommittedOffset, now_ms: int
) -> Exception | None:
    try:
        check_committed_offset(offset)
    except InvalidInput as problem:
        return problem
    stored = connection.execute(
        "INSERT INTO group_offsets"
        " (group_id, topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at)"
        " SELECT ?, topic_id, partition_id, ?, ?, ?, ? FROM partitions WHERE topic_id = ? AND partition_id = ?"
        " ON CONFLICT (group_id, topic_id, partition_id) DO UPDATE SET committed_offset = excluded.committed_offset,"
        " leader_epoch = excluded.leader_epoch, metadata = excluded.metadata, committed_at = excluded.committed_at",
        (
            group_id,
            offset.offset,
            offset.leader_epoch,
            offset.metadata,
            now_ms,
            str(partition.topic_id),
            partition.partition,
        ),
    ).rowcount
    return None if stored else NotFound(f"no partition {partition}")
