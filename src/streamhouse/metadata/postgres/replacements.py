"""Segments in the place of others, in PostgreSQL."""

from __future__ import annotations

from uuid import UUID

from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import lock_led
from streamhouse.metadata.postgres.segments import insert_segments, load_segments
from streamhouse.metadata.replacement import HISTORY_MS, check_replacement, commit_id_of, judge_replacement
from streamhouse.metadata.store import Replacement
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition

_BEGIN_GENERATION = """
    UPDATE partitions SET generation = generation + 1 WHERE topic_id = $1 AND partition_id = $2 RETURNING generation
"""
_REMOVE_SEGMENTS = """
    WITH removed AS (
        DELETE FROM segments WHERE topic_id = $1 AND partition_id = $2 AND base_offset = ANY($3::bigint[])
        RETURNING object_key
    )
    INSERT INTO garbage (object_key, unreferenced_since) SELECT object_key, now_ms() FROM removed
    ON CONFLICT DO NOTHING
"""
_COUNT = "UPDATE partitions SET replacements = replacements + 1 WHERE topic_id = $1 AND partition_id = $2"
_FORGET_OLD = """
    DELETE FROM segment_replacements
    WHERE topic_id = $1 AND partition_id = $2 AND replaced_at < now_ms() - $3::bigint
"""
_REMEMBER = """
    INSERT INTO segment_replacements (commit_id, topic_id, partition_id, replaced_at) VALUES ($1, $2, $3, now_ms())
"""


class PostgresReplacements:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin_generation(self, partition: TopicPartition) -> int:
        async def work(connection: Connection) -> int:
            generation = await connection.fetchval(_BEGIN_GENERATION, partition.topic_id, partition.partition)
            if generation is None:
                raise NotFound(f"partition {partition} is gone")
            return int(generation)

        return await self._database.transact(work)

    async def replace_segments(self, replacement: Replacement) -> None:
        """As with `commit_segments`, a repeat waits for the first try's locks before it looks for the commit id."""
        check_replacement(replacement)
        partition = replacement.partition
        key = (partition.topic_id, partition.partition)

        async def work(connection: Connection) -> None:
            led = (await lock_led(connection, [partition])).get(partition)
            if await _is_done(connection, replacement.commit_id):
                return
            (removed,) = await load_segments(connection, [partition], keys=replacement.removed)
            judge_replacement(replacement, led, removed)
            await connection.execute(_REMOVE_SEGMENTS, *key, [segment.base_offset for segment in removed])
            added = [(partition, segment, commit_id_of(replacement, segment)) for segment in replacement.added]
            await insert_segments(connection, added)
            await connection.execute(_COUNT, *key)
            await connection.execute(_FORGET_OLD, *key, HISTORY_MS)
            await connection.execute(_REMEMBER, replacement.commit_id, *key)

        await self._database.transact(work)

    async def was_replaced(self, commit_id: UUID) -> bool:
        return await self._database.transact(lambda connection: _is_done(connection, commit_id))


async def _is_done(connection: Connection, commit_id: UUID) -> bool:
    found = await connection.fetchval("SELECT true FROM segment_replacements WHERE commit_id = $1", commit_id)
    return found is not None
