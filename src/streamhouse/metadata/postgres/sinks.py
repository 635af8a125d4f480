"""Sinks, their batches and what was staged for them in vain, in PostgreSQL.

What is done to one sink is done under a lock of its name, which may have no row yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamhouse.metadata.checks import check_count
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.sink_batches import (
    Sink,
    abandoned,
    check_sink,
    check_sink_batch,
    forgotten,
    needs_new_producer,
)
from streamhouse.metadata.sinks import FAILED, NewSinkBatch, SinkBatch

# Any number, as long as every version of this code uses the same and nothing else does.
_LOCK_SPACE = 0x53_49_4E_4B
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, $2))"
_SELECT = """
    SELECT sink_id, batch_id, manifest_key, record_count, producer_id, producer_epoch,
        now_ms() - begun_at AS age_ms, done_at IS NOT NULL AS is_done
    FROM sink_batches
"""
_FIND = f"{_SELECT} WHERE sink_id = $1 AND batch_id = $2"
# What another agent is claiming now is its own.
_LOCK_IDLE = f"""
    {_SELECT} WHERE done_at IS NULL AND claimed_at <= now_ms() - $1::bigint
    ORDER BY claimed_at LIMIT $2 FOR UPDATE SKIP LOCKED
"""
_CLAIM = """
    UPDATE sink_batches b SET claimed_at = now_ms()
    FROM unnest($1::text[], $2::bigint[]) AS idle (sink_id, batch_id)
    WHERE b.sink_id = idle.sink_id AND b.batch_id = idle.batch_id
"""
_KEEP = "UPDATE sink_batches SET claimed_at = now_ms() WHERE sink_id = $1 AND batch_id = $2 AND done_at IS NULL"
_FINISH = "UPDATE sink_batches SET done_at = now_ms() WHERE sink_id = $1 AND batch_id = $2 AND done_at IS NULL"
_FAIL = """
    UPDATE sink_batches SET done_at = now_ms(), record_count = $3
    WHERE sink_id = $1 AND batch_id = $2 AND done_at IS NULL
"""
_FIND_ABANDONED = "SELECT object_key FROM abandoned_objects WHERE object_key = ANY($1::text[]) LIMIT 1"
_ABANDON = """
    INSERT INTO abandoned_objects (object_key, abandoned_at)
    SELECT object_key, now_ms() FROM unnest($1::text[]) AS object_key ON CONFLICT DO NOTHING
"""
_FIND_SINK = "SELECT producer_id, producer_epoch, forgotten_through FROM sinks WHERE sink_id = $1 FOR UPDATE"
_HAS_UNFINISHED = "SELECT EXISTS (SELECT FROM sink_batches WHERE sink_id = $1 AND done_at IS NULL)"
_TAKE_PRODUCER = "UPDATE producer_ids SET next_producer_id = next_producer_id + 1 RETURNING next_producer_id - 1"
_STORE_SINK = """
    INSERT INTO sinks (sink_id, producer_id, producer_epoch, used_at) VALUES ($1, $2, $3, now_ms())
    ON CONFLICT (sink_id) DO UPDATE SET
        producer_id = excluded.producer_id, producer_epoch = excluded.producer_epoch, used_at = excluded.used_at
"""
_INSERT = """
    INSERT INTO sink_batches
        (sink_id, batch_id, manifest_key, record_count, producer_id, producer_epoch, begun_at, claimed_at)
    VALUES ($1, $2, $3, $4, $5, $6, now_ms(), now_ms())
"""
# A sink that is in use has been used a moment ago; if that happens while we wait for it, its time is looked at again.
_FORGET_SINKS = """
    DELETE FROM sinks s WHERE used_at <= now_ms() - $1::bigint AND NOT EXISTS (
        SELECT FROM sink_batches b
        WHERE b.sink_id = s.sink_id AND (b.done_at IS NULL OR b.done_at > now_ms() - $1::bigint)
    )
"""
_FORGET_BATCHES = """
    WITH old AS (
        DELETE FROM sink_batches b WHERE done_at <= now_ms() - $1::bigint AND EXISTS (
            SELECT FROM sink_batches later WHERE later.sink_id = b.sink_id AND later.batch_id > b.batch_id
        )
        RETURNING sink_id, batch_id
    )
    UPDATE sinks s SET forgotten_through = greatest(s.forgotten_through, last.batch_id)
    FROM (SELECT sink_id, max(batch_id) AS batch_id FROM old GROUP BY sink_id) AS last
    WHERE s.sink_id = last.sink_id
"""
_FORGET_ABANDONED = "DELETE FROM abandoned_objects WHERE abandoned_at <= now_ms() - $1::bigint"


class PostgresSinks:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def find_sink_batch(self, sink_id: str, batch_id: int) -> SinkBatch | None:
        check_sink(sink_id, batch_id)
        return await self._database.transact(lambda connection: _find(connection, sink_id, batch_id))

    async def begin_sink_batch(self, batch: NewSinkBatch) -> SinkBatch:
        check_sink_batch(batch)

        async def work(connection: Connection) -> SinkBatch:
            await connection.execute(_LOCK, batch.sink_id, _LOCK_SPACE)
            begun = await _find(connection, batch.sink_id, batch.batch_id)
            if begun is None:
                await _begin(connection, batch)
                begun = await _find(connection, batch.sink_id, batch.batch_id)
                assert begun is not None
            return begun

        return await self._database.transact(work)

    async def claim_sink_batches(self, idle_ms: int, limit: int) -> list[SinkBatch]:
        check_count("batches", limit)

        async def work(connection: Connection) -> list[SinkBatch]:
            idle = [_to_batch(row) for row in await connection.fetch(_LOCK_IDLE, idle_ms, limit)]
            if idle:
                await connection.execute(_CLAIM, [batch.sink_id for batch in idle], [batch.batch_id for batch in idle])
            return idle

        return await self._database.transact(work)

    async def keep_sink_batch(self, sink_id: str, batch_id: int) -> None:
        await self._database.transact(lambda connection: connection.execute(_KEEP, sink_id, batch_id))

    async def finish_sink_batch(self, sink_id: str, batch_id: int) -> None:
        await self._database.transact(lambda connection: connection.execute(_FINISH, sink_id, batch_id))

    async def fail_sink_batch(self, sink_id: str, batch_id: int) -> None:
        await self._database.transact(lambda connection: connection.execute(_FAIL, sink_id, batch_id, FAILED))

    async def abandon_staged_objects(self, sink_id: str, batch_id: int, object_keys: Sequence[str]) -> bool:
        check_sink(sink_id, batch_id)

        async def work(connection: Connection) -> bool:
            await connection.execute(_LOCK, sink_id, _LOCK_SPACE)
            batch = await _find(connection, sink_id, batch_id)
            if batch is not None:
                return batch.is_done
            await connection.execute(_ABANDON, list(object_keys))
            return True

        return await self._database.transact(work)

    async def prune_sink_batches(self, keep_ms: int, keep_last_ms: int) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(_FORGET_SINKS, keep_last_ms)
            await connection.execute(_FORGET_BATCHES, keep_ms)
            await connection.execute(_FORGET_ABANDONED, keep_ms)

        await self._database.transact(work)


async def _find(connection: Connection, sink_id: str, batch_id: int) -> SinkBatch | None:
    row = await connection.fetchrow(_FIND, sink_id, batch_id)
    return None if row is None else _to_batch(row)


async def _begin(connection: Connection, batch: NewSinkBatch) -> None:
    key = await connection.fetchval(_FIND_ABANDONED, [batch.manifest_key, *batch.object_keys])
    if key is not None:
        raise abandoned(batch, key)
    producer_id, producer_epoch = await _next_producer(connection, batch)
    await connection.execute(_STORE_SINK, batch.sink_id, producer_id, producer_epoch)
    await connection.execute(
        _INSERT, batch.sink_id, batch.batch_id, batch.manifest_key, batch.record_count, producer_id, producer_epoch
    )


async def _next_producer(connection: Connection, batch: NewSinkBatch) -> tuple[int, int]:
    row = await connection.fetchrow(_FIND_SINK, batch.sink_id)
    if row is not None:
        sink = Sink(*row)
        if batch.batch_id <= sink.forgotten_through:
            raise forgotten(batch, sink.forgotten_through)
        has_unfinished = await connection.fetchval(_HAS_UNFINISHED, batch.sink_id)
        if not needs_new_producer(sink, has_unfinished_batch=has_unfinished):
            return sink.producer_id, sink.producer_epoch + 1
    return int(await connection.fetchval(_TAKE_PRODUCER)), 0


def _to_batch(row: Any) -> SinkBatch:
    return SinkBatch(**row)
