"""Pins against retention in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamhouse.metadata.checks import check_pin
from streamhouse.metadata.pins import MAX_PINS, too_many_pins
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, hold_partitions, to_partition
from streamhouse.model.names import TopicPartition

# What another is setting again now has not expired.
_FORGET_EXPIRED = """
    DELETE FROM pins WHERE pin_id IN (
        SELECT pin_id FROM pins WHERE expires_at <= now_ms() AND pin_id <> $1 ORDER BY pin_id FOR UPDATE SKIP LOCKED
    )
"""
# Whoever sets the same pin at the same time waits here.
_SET = """
    INSERT INTO pins (pin_id, expires_at) VALUES ($1, now_ms() + $2::bigint)
    ON CONFLICT (pin_id) DO UPDATE SET expires_at = excluded.expires_at
"""
_SET_OFFSETS = """
    INSERT INTO pinned_offsets (pin_id, topic_id, partition_id, pinned_offset)
    SELECT $1, topic_id, partition_id, pinned_offset
    FROM unnest($2::uuid[], $3::int[], $4::bigint[]) AS new (topic_id, partition_id, pinned_offset)
"""
_LOAD = """
    SELECT topic_id, partition_id, min(pinned_offset) AS pinned_offset
    FROM pinned_offsets
    JOIN pins USING (pin_id)
    JOIN unnest($1::uuid[], $2::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
    WHERE expires_at > now_ms()
    GROUP BY topic_id, partition_id
"""


class PostgresPins:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def set_pins(self, pin_id: str, ttl_ms: int, offsets: Mapping[TopicPartition, int]) -> None:
        check_pin(pin_id, ttl_ms, offsets)

        async def work(connection: Connection) -> None:
            existing = list((await hold_partitions(connection, offsets)).values())
            await connection.execute(_FORGET_EXPIRED, pin_id)
            if not offsets:
                await connection.execute("DELETE FROM pins WHERE pin_id = $1", pin_id)
                return
            others = await connection.fetchval("SELECT count(*) FROM pins WHERE pin_id <> $1", pin_id)
            if others >= MAX_PINS:
                raise too_many_pins()
            await connection.execute(_SET, pin_id, ttl_ms)
            await connection.execute("DELETE FROM pinned_offsets WHERE pin_id = $1", pin_id)
            await connection.execute(
                _SET_OFFSETS, pin_id, *columns(existing), [offsets[partition] for partition in existing]
            )

        await self._database.transact(work)

    async def load_pins(self, partitions: Sequence[TopicPartition]) -> list[int | None]:
        async def work(connection: Connection) -> list[int | None]:
            rows = await connection.fetch(_LOAD, *columns(set(partitions)))
            found = {to_partition(row): row["pinned_offset"] for row in rows}
            return [found.get(partition) for partition in partitions]

        return await self._database.transact(work)
