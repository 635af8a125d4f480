"""Group offsets in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamhouse.metadata.checks import check_committed_offset, check_text
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, hold_partitions, to_partition
from streamhouse.metadata.store import CommittedOffset
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.names import TopicPartition

_COMMIT = """
    INSERT INTO group_offsets (group_id, topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at)
    SELECT $1, topic_id, partition_id, committed_offset, leader_epoch, metadata, now_ms()
    FROM unnest($2::uuid[], $3::int[], $4::bigint[], $5::int[], $6::bytea[])
        AS new (topic_id, partition_id, committed_offset, leader_epoch, metadata)
    ORDER BY topic_id, partition_id
    ON CONFLICT (group_id, topic_id, partition_id) DO UPDATE SET
        committed_offset = excluded.committed_offset, leader_epoch = excluded.leader_epoch,
        metadata = excluded.metadata, committed_at = excluded.committed_at
"""
_FETCH = """
    SELECT topic_id, partition_id, committed_offset, leader_epoch, metadata, committed_at
    FROM group_offsets WHERE group_id = $1 ORDER BY topic_id, partition_id
"""
# Locked in the order that commits have, so that neither waits for the other in a circle.
_DELETE = """
    WITH gone AS MATERIALIZED (
        SELECT g.topic_id, g.partition_id FROM group_offsets g
        JOIN unnest($2::uuid[], $3::int[]) AS asked (topic_id, partition_id) USING (topic_id, partition_id)
        WHERE g.group_id = $1 ORDER BY g.topic_id, g.partition_id FOR UPDATE OF g
    )
    DELETE FROM group_offsets g USING gone
    WHERE g.group_id = $1 AND g.topic_id = gone.topic_id AND g.partition_id = gone.partition_id
"""


class PostgresGroupOffsets:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def commit_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, Exception | None]:
        check_text("group id", group_id)

        async def work(connection: Connection) -> dict[TopicPartition, Exception | None]:
            there = set((await hold_partitions(connection, offsets)).values())
            answers = {partition: _problem(partition, offset, there) for partition, offset in offsets.items()}
            good = [partition for partition, problem in answers.items() if problem is None]
            await connection.execute(
                _COMMIT,
                group_id,
                *columns(good),
                [offsets[partition].offset for partition in good],
                [offsets[partition].leader_epoch for partition in good],
                [offsets[partition].metadata.encode() for partition in good],
            )
            return answers

        return await self._database.transact(work)

    async def fetch_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        async def work(connection: Connection) -> dict[TopicPartition, CommittedOffset]:
            return {
                to_partition(row): CommittedOffset(
                    offset=row["committed_offset"],
                    leader_epoch=row["leader_epoch"],
                    metadata=row["metadata"].decode(),
                    committed_at_ms=row["committed_at"],
                )
                for row in await connection.fetch(_FETCH, group_id)
            }

        return await self._database.transact(work)

    async def delete_offsets(self, group_id: str, partitions: Sequence[TopicPartition]) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute(_DELETE, group_id, *columns(partitions))

        await self._database.transact(work)


def _problem(partition: TopicPartition, offset: CommittedOffset, there: set[TopicPartition]) -> Exception | None:
    try:
        check_committed_offset(offset)
    except InvalidInput as problem:
        return problem
    return None if partition in there else NotFound(f"no partition {partition}")
