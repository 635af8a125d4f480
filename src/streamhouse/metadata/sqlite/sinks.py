"""Sinks, their batches and what was staged for them in vain, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from streamhouse.metadata.checks import check_count
from streamhouse.metadata.sink_batches import (
    Sink,
    abandoned,
    check_sink,
    check_sink_batch,
    forgotten,
    needs_new_producer,
)
from streamhouse.metadata.sinks import FAILED, NewSinkBatch, SinkBatch
from streamhouse.metadata.sqlite.database import Database

_SELECT = """
    SELECT sink_id, batch_id, manifest_key, record_count, producer_id, producer_epoch, begun_at, done_at IS NOT NULL
    FROM sink_batches
"""
_FIND = f"{_SELECT} WHERE sink_id = ? AND batch_id = ?"
_FIND_IDLE = f"{_SELECT} WHERE done_at IS NULL AND claimed_at <= ? ORDER BY claimed_at LIMIT ?"
_CLAIM = "UPDATE sink_batches SET claimed_at = ? WHERE sink_id = ? AND batch_id = ? AND done_at IS NULL"
_FAIL = """
    UPDATE sink_batches SET done_at = ?, record_count = ? WHERE sink_id = ? AND batch_id = ? AND done_at IS NULL
"""
_STORE_SINK = """
    INSERT INTO sinks (sink_id, producer_id, producer_epoch, used_at) VALUES (?, ?, ?, ?)
    ON CONFLICT (sink_id) DO UPDATE SET
        producer_id = excluded.producer_id, producer_epoch = excluded.producer_epoch, used_at = excluded.used_at
"""
_INSERT = """
    INSERT INTO sink_batches
        (sink_id, batch_id, manifest_key, record_count, producer_id, producer_epoch, begun_at, claimed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""
_FORGET_SINKS = """
    DELETE FROM sinks WHERE used_at <= ? AND NOT EXISTS (
        SELECT 1 FROM sink_batches b WHERE b.sink_id = sinks.sink_id AND (b.done_at IS NULL OR b.done_at > ?)
    )
"""
_FIND_OLD = """
    SELECT sink_id, batch_id FROM sink_batches b WHERE done_at <= ? AND EXISTS (
        SELECT 1 FROM sink_batches later WHERE later.sink_id = b.sink_id AND later.batch_id > b.batch_id
    )
"""


class SqliteSinks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_sink_batch(self, sink_id: str, batch_id: int) -> SinkBatch | None:
        check_sink(sink_id, batch_id)
        return await self._database.read(lambda connection: self._find(connection, sink_id, batch_id))

    async def begin_sink_batch(self, batch: NewSinkBatch) -> SinkBatch:
        check_sink_batch(batch)

        def work(connection: sqlite3.Connection) -> SinkBatch:
            begun = self._find(connection, batch.sink_id, batch.batch_id)
            if begun is None:
                self._begin(connection, batch)
                begun = self._find(connection, batch.sink_id, batch.batch_id)
                assert begun is not None
            return begun

        return await self._database.write(work)

    async def claim_sink_batches(self, idle_ms: int, limit: int) -> list[SinkBatch]:
        check_count("batches", limit)

        def work(connection: sqlite3.Connection) -> list[SinkBatch]:
            now_ms = self._database.now_ms()
            idle = [_to_batch(row, now_ms) for row in connection.execute(_FIND_IDLE, (now_ms - idle_ms, limit))]
            connection.executemany(_CLAIM, ((now_ms, batch.sink_id, batch.batch_id) for batch in idle))
            return idle

        return await self._database.write(work)

    async def keep_sink_batch(self, sink_id: str, batch_id: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_CLAIM, (self._database.now_ms(), sink_id, batch_id))

        await self._database.write(work)

    async def finish_sink_batch(self, sink_id: str, batch_id: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE sink_batches SET done_at = ? WHERE sink_id = ? AND batch_id = ? AND done_at IS NULL",
                (self._database.now_ms(), sink_id, batch_id),
            )

        await self._database.write(work)

    async def fail_sink_batch(self, sink_id: str, batch_id: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_FAIL, (self._database.now_ms(), FAILED, sink_id, batch_id))

        await self._database.write(work)

    async def abandon_staged_objects(self, sink_id: str, batch_id: int, object_keys: Sequence[str]) -> bool:
        check_sink(sink_id, batch_id)

        def work(connection: sqlite3.Connection) -> bool:
            batch = self._find(connection, sink_id, batch_id)
            if batch is not None:
                return batch.is_done
            connection.executemany(
                "INSERT INTO abandoned_objects (object_key, abandoned_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
                ((key, self._database.now_ms()) for key in object_keys),
            )
            return True

        return await self._database.write(work)

    async def prune_sink_batches(self, keep_ms: int, keep_last_ms: int) -> None:
        def work(connection: sqlite3.Connection) -> None:
            now_ms = self._database.now_ms()
            connection.execute(_FORGET_SINKS, (now_ms - keep_last_ms, now_ms - keep_last_ms))
            old = connection.execute(_FIND_OLD, (now_ms - keep_ms,)).fetchall()
            connection.executemany(
                "UPDATE sinks SET forgotten_through = max(forgotten_through, ?) WHERE sink_id = ?",
                ((batch_id, sink_id) for sink_id, batch_id in old),
            )
            connection.executemany("DELETE FROM sink_batches WHERE sink_id = ? AND batch_id = ?", old)
            connection.execute("DELETE FROM abandoned_objects WHERE abandoned_at <= ?", (now_ms - keep_ms,))

        await self._database.write(work)

    def _find(self, connection: sqlite3.Connection, sink_id: str, batch_id: int) -> SinkBatch | None:
        row = connection.execute(_FIND, (sink_id, batch_id)).fetchone()
        return None if row is None else _to_batch(row, self._database.now_ms())

    def _begin(self, connection: sqlite3.Connection, batch: NewSinkBatch) -> None:
        for key in (batch.manifest_key, *batch.object_keys):
            if connection.execute("SELECT 1 FROM abandoned_objects WHERE object_key = ?", (key,)).fetchone():
                raise abandoned(batch, key)
        producer_id, producer_epoch = _next_producer(connection, batch)
        now_ms = self._database.now_ms()
        connection.execute(_STORE_SINK, (batch.sink_id, producer_id, producer_epoch, now_ms))
        connection.execute(
            _INSERT,
            (
                batch.sink_id,
                batch.batch_id,
                batch.manifest_key,
                batch.record_count,
                producer_id,
                producer_epoch,
                now_ms,
                now_ms,
            ),
        )


def _next_producer(connection: sqlite3.Connection, batch: NewSinkBatch) -> tuple[int, int]:
    row = connection.execute(
        "SELECT producer_id, producer_epoch, forgotten_through FROM sinks WHERE sink_id = ?", (batch.sink_id,)
    ).fetchone()
    if row is not None:
        sink = Sink(*row)
        if batch.batch_id <= sink.forgotten_through:
            raise forgotten(batch, sink.forgotten_through)
        (has_unfinished,) = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM sink_batches WHERE sink_id = ? AND done_at IS NULL)", (batch.sink_id,)
        ).fetchone()
        if not needs_new_producer(sink, has_unfinished_batch=bool(has_unfinished)):
            return sink.producer_id, sink.producer_epoch + 1
    (producer_id,) = connection.execute(
        "UPDATE producer_ids SET next_producer_id = next_producer_id + 1 RETURNING next_producer_id - 1"
    ).fetchone()
    return producer_id, 0


def _to_batch(row: tuple[Any, ...], now_ms: int) -> SinkBatch:
    sink_id, batch_id, manifest_key, record_count, producer_id, producer_epoch, begun_at, is_done = row
    return SinkBatch(
        sink_id=sink_id,
        batch_id=batch_id,
        manifest_key=manifest_key,
        record_count=record_count,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        age_ms=now_ms - begun_at,
        is_done=bool(is_done),
    )
