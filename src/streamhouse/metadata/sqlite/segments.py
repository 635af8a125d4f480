"""Committed segments, the partitions they advance, and their garbage, in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from itertools import compress
from uuid import UUID

from streamhouse.metadata.checks import check_commits, check_count, check_offset
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.leadership import is_leader, judge_commits, require_forward, require_leader
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import find_led, key_of
from streamhouse.metadata.store import EpochStart, PartitionRow, SegmentCommit, SegmentRow
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition

_SELECT_SEGMENTS = (
    "SELECT base_offset, end_offset, record_count, size_bytes, min_timestamp, max_timestamp,"
    " epoch, object_key, checksum, created_at FROM segments WHERE topic_id = ? AND partition_id = ?"
)
_CHOSEN = "AND object_key IN (SELECT value FROM json_each(?))"


class SqliteSegments:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_partitions(self, partitions: Sequence[TopicPartition]) -> list[PartitionRow]:
        return await self._database.read(
            lambda connection: [_load_partition(connection, partition) for partition in partitions]
        )

    async def load_segments(self, partitions: Sequence[TopicPartition]) -> list[list[SegmentRow]]:
        return await self._database.read(
            lambda connection: [load_segments(connection, partition) for partition in partitions]
        )

    async def commit_segments(self, commits: Sequence[SegmentCommit]) -> list[Exception | None]:
        check_commits(commits)

        def work(connection: sqlite3.Connection) -> list[Exception | None]:
            now_ms = self._database.now_ms()
            verdict = judge_commits(
                commits,
                find_led(connection, {commit.partition for commit in commits}, now_ms),
                _find_registered(connection, commits),
            )
            insert_segments(
                connection,
                ((commit.partition, commit.segment, commit.commit_id) for commit in verdict.accepted),
                now_ms,
            )
            connection.executemany(
                "UPDATE partitions SET high_watermark = ?, producer_state = ? WHERE topic_id = ? AND partition_id = ?",
                (
                    (commit.segment.end_offset, commit.producer_state, *key_of(commit.partition))
                    for commit in verdict.final_commits()
                ),
            )
            return verdict.answers

        return await self._database.write(work)

    async def begin_epochs(self, agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
        for start in starts:
            check_offset(start.offset)

        def work(connection: sqlite3.Connection) -> list[bool]:
            led = find_led(connection, {start.lease.partition for start in starts}, self._database.now_ms())
            is_ours = [is_leader(led.get(start.lease.partition), agent_id, start.lease.epoch) for start in starts]
            ours = list(compress(starts, is_ours))
            connection.executemany(
                "INSERT INTO leader_epochs (topic_id, partition_id, epoch, start_offset) VALUES (?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                ((*key_of(start.lease.partition), start.lease.epoch, start.offset) for start in ours),
            )
            connection.executemany(
                "UPDATE partitions SET wal_agent_id = ? WHERE topic_id = ? AND partition_id = ?",
                ((agent_id if start.in_local_wal else "", *key_of(start.lease.partition)) for start in ours),
            )
            return is_ours

        return await self._database.write(work, Change.LEASES)

    async def advance_log_start(
        self, partition: TopicPartition, agent_id: str, epoch: int, log_start_offset: int
    ) -> list[SegmentRow]:
        def work(connection: sqlite3.Connection) -> list[SegmentRow]:
            now_ms = self._database.now_ms()
            led = find_led(connection, {partition}, now_ms).get(partition)
            require_forward(require_leader(led, partition, agent_id, epoch), partition, log_start_offset)
            below = (*key_of(partition), log_start_offset)
            dropped = connection.execute(
                f"{_SELECT_SEGMENTS} AND end_offset <= ? ORDER BY base_offset", below
            ).fetchall()
            connection.execute(
                "INSERT INTO garbage (object_key, unreferenced_since) SELECT object_key, ? FROM segments"
                " WHERE topic_id = ? AND partition_id = ? AND end_offset <= ? ON CONFLICT DO NOTHING",
                (now_ms, *below),
            )
            connection.execute(
                "DELETE FROM segments WHERE topic_id = ? AND partition_id = ? AND end_offset <= ?", below
            )
            connection.execute(
                "UPDATE partitions SET log_start_offset = ? WHERE topic_id = ? AND partition_id = ?",
                (log_start_offset, *key_of(partition)),
            )
            return [_to_segment(row) for row in dropped]

        return await self._database.write(work)

    async def list_garbage(self, older_than_ms: int, limit: int) -> list[str]:
        check_count("keys", limit)

        def work(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(
                "SELECT object_key FROM garbage WHERE unreferenced_since <= ?"
                " ORDER BY unreferenced_since, object_key LIMIT ?",
                (self._database.now_ms() - older_than_ms, limit),
            )
            return [key for (key,) in rows]

        return await self._database.read(work)

    async def forget_garbage(self, keys: Sequence[str]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM garbage WHERE object_key = ?", ((key,) for key in keys))

        await self._database.write(work)


def _load_partition(connection: sqlite3.Connection, partition: TopicPartition) -> PartitionRow:
    row = connection.execute(
        "SELECT topic, log_start_offset, high_watermark, max(high_watermark, wal_end), producer_state, replacements"
        " FROM partitions WHERE topic_id = ? AND partition_id = ?",
        key_of(partition),
    ).fetchone()
    if row is None:
        raise NotFound(f"no partition {partition}")
    topic, log_start_offset, next_offset, durable_end, producer_state, replacements = row
    epochs = connection.execute(
        "SELECT epoch, start_offset FROM leader_epochs WHERE topic_id = ? AND partition_id = ? ORDER BY epoch",
        key_of(partition),
    )
    return PartitionRow(
        topic=topic,
        partition=partition,
        log_start_offset=log_start_offset,
        next_offset=next_offset,
        durable_end=durable_end,
        producer_state=producer_state,
        epochs=tuple(epochs),
        replacements=replacements,
    )


def load_segments(
    connection: sqlite3.Connection, partition: TopicPartition, keys: Sequence[str] | None = None
) -> list[SegmentRow]:
    """By base offset; with `keys`, those of them that are there."""
    some, chosen = ("", ()) if keys is None else (_CHOSEN, (json.dumps(keys),))
    rows = connection.execute(f"{_SELECT_SEGMENTS} {some} ORDER BY base_offset", (*key_of(partition), *chosen))
    return [_to_segment(row) for row in rows]


def insert_segments(
    connection: sqlite3.Connection, added: Iterable[tuple[TopicPartition, SegmentRow, UUID]], now_ms: int
) -> None:
    """Each with its commit id."""
    connection.executemany(
        "INSERT INTO segments (topic_id, partition_id, base_offset, end_offset, topic, record_count,"
        " size_bytes, min_timestamp, max_timestamp, epoch, object_key, checksum, commit_id, created_at)"
        " SELECT topic_id, partition_id, ?, ?, topic, ?, ?, ?, ?, ?, ?, ?, ?, ?"
        " FROM partitions WHERE topic_id = ? AND partition_id = ?",
        (
            (*_segment_values(segment), str(commit_id), now_ms, *key_of(partition))
            for partition, segment, commit_id in added
        ),
    )


def _find_registered(connection: sqlite3.Connection, commits: Sequence[SegmentCommit]) -> set[UUID]:
    return {
        commit.commit_id
        for commit in commits
        if connection.execute("SELECT 1 FROM segments WHERE commit_id = ?", (str(commit.commit_id),)).fetchone()
    }


def _segment_values(segment: SegmentRow) -> tuple[int | str, ...]:
    return (
        segment.base_offset,
        segment.end_offset,
        segment.record_count,
        segment.size_bytes,
        segment.min_timestamp_ms,
        segment.max_timestamp_ms,
        segment.epoch,
        segment.object_key,
        segment.checksum,
    )


def _to_segment(row: tuple[int, int, int, int, int, int, int, str, int, int]) -> SegmentRow:
    return SegmentRow(
        base_offset=row[0],
        end_offset=row[1],
        record_count=row[2],
        size_bytes=row[3],
        min_timestamp_ms=row[4],
        max_timestamp_ms=row[5],
        epoch=row[6],
        object_key=row[7],
        checksum=row[8],
        created_at_ms=row[9],
    )
