"""Segments in the place of others, in SQLite."""

from __future__ import annotations

import sqlite3
from uuid import UUID

from streamhouse.metadata.replacement import HISTORY_MS, check_replacement, commit_id_of, judge_replacement
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import find_led, key_of
from streamhouse.metadata.sqlite.segments import insert_segments, load_segments
from streamhouse.metadata.store import Replacement
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition


class SqliteReplacements:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin_generation(self, partition: TopicPartition) -> int:
        def work(connection: sqlite3.Connection) -> int:
            row = connection.execute(
                "UPDATE partitions SET generation = generation + 1 WHERE topic_id = ? AND partition_id = ?"
                " RETURNING generation",
                key_of(partition),
            ).fetchone()
            if row is None:
                raise NotFound(f"partition {partition} is gone")
            return int(row[0])

        return await self._database.write(work)

    async def replace_segments(self, replacement: Replacement) -> None:
        check_replacement(replacement)
        partition = replacement.partition

        def work(connection: sqlite3.Connection) -> None:
            if _is_done(connection, replacement.commit_id):
                return
            now_ms = self._database.now_ms()
            removed = load_segments(connection, partition, keys=replacement.removed)
            judge_replacement(replacement, find_led(connection, {partition}, now_ms).get(partition), removed)
            connection.executemany(
                "INSERT INTO garbage (object_key, unreferenced_since) VALUES (?, ?) ON CONFLICT DO NOTHING",
                ((segment.object_key, now_ms) for segment in removed),
            )
            connection.executemany(
                "DELETE FROM segments WHERE topic_id = ? AND partition_id = ? AND base_offset = ?",
                ((*key_of(partition), segment.base_offset) for segment in removed),
            )
            added = ((partition, segment, commit_id_of(replacement, segment)) for segment in replacement.added)
            insert_segments(connection, added, now_ms)
            connection.execute(
                "UPDATE partitions SET replacements = replacements + 1 WHERE topic_id = ? AND partition_id = ?",
                key_of(partition),
            )
            connection.execute(
                "DELETE FROM segment_replacements WHERE topic_id = ? AND partition_id = ? AND replaced_at < ?",
                (*key_of(partition), now_ms - HISTORY_MS),
            )
            connection.execute(
                "INSERT INTO segment_replacements (commit_id, topic_id, partition_id, replaced_at) VALUES (?, ?, ?, ?)",
                (str(replacement.commit_id), *key_of(partition), now_ms),
            )

        await self._database.write(work)

    async def was_replaced(self, commit_id: UUID) -> bool:
        return await self._database.read(lambda connection: _is_done(connection, commit_id))


def _is_done(connection: sqlite3.Connection, commit_id: UUID) -> bool:
    found = connection.execute("SELECT 1 FROM segment_replacements WHERE commit_id = ?", (str(commit_id),))
    return found.fetchone() is not None
