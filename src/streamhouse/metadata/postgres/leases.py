"""Partition leases in PostgreSQL, judged by its clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from streamhouse.metadata.checks import check_text, check_ttl
from streamhouse.metadata.postgres.agents import find_dead
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, lock_partitions, to_partition
from streamhouse.metadata.registration import TakenOver
from streamhouse.metadata.store import Lease
from streamhouse.model.names import TopicPartition

# The condition is judged on the row as it is when its lock is ours: of two that ask at once, one sees the other's.
_ACQUIRE = """
    INSERT INTO partition_leases AS l (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)
    SELECT topic, partition_id, $3, now_ms() + $4::bigint, now_ms(), 1
    FROM unnest($1::text[], $2::int[]) AS asked (topic, partition_id) ORDER BY topic, partition_id
    ON CONFLICT (topic, partition_id) DO UPDATE SET
        leader_agent_id = excluded.leader_agent_id, lease_expires_at = excluded.lease_expires_at,
        acquired_at = excluded.acquired_at, epoch = l.epoch + 1
    WHERE l.lease_expires_at <= now_ms() OR l.leader_agent_id = excluded.leader_agent_id
    RETURNING topic, partition_id, epoch, lease_expires_at
"""
# As they are before they are granted; in the order in which every transaction locks them.
_LOCK_ASKED = """
    SELECT l.topic, l.partition_id, l.leader_agent_id, l.lease_expires_at
    FROM partition_leases l
    JOIN unnest($1::text[], $2::int[]) AS asked (topic, partition_id) USING (topic, partition_id)
    ORDER BY l.topic, l.partition_id FOR NO KEY UPDATE OF l
"""
# A lease is found through its partition's topic id, so that one of another topic of that name is never touched.
_LOCK_HELD = """
    SELECT FROM partition_leases l
    JOIN partitions p USING (topic, partition_id)
    JOIN unnest($1::uuid[], $2::int[], $3::bigint[]) AS held (topic_id, partition_id, epoch)
        ON held.topic_id = p.topic_id AND held.partition_id = p.partition_id AND held.epoch = l.epoch
    WHERE l.leader_agent_id = $4
    ORDER BY l.topic, l.partition_id FOR NO KEY UPDATE OF l
"""
_RENEW = """
    UPDATE partition_leases l SET lease_expires_at = now_ms() + $5::bigint
    FROM partitions p JOIN unnest($1::uuid[], $2::int[], $3::bigint[]) AS held (topic_id, partition_id, epoch)
        USING (topic_id, partition_id)
    WHERE l.topic = p.topic AND l.partition_id = p.partition_id
        AND l.leader_agent_id = $4 AND l.epoch = held.epoch AND l.lease_expires_at > now_ms()
    RETURNING p.topic_id, l.partition_id, l.epoch, l.lease_expires_at
"""
# Zero and not `now`: a clock that steps back must not bring a released lease to life.
_RELEASE = """
    UPDATE partition_leases l SET lease_expires_at = 0
    FROM partitions p JOIN unnest($1::uuid[], $2::int[], $3::bigint[]) AS held (topic_id, partition_id, epoch)
        USING (topic_id, partition_id)
    WHERE l.topic = p.topic AND l.partition_id = p.partition_id AND l.leader_agent_id = $4 AND l.epoch = held.epoch
"""
# What an agent says of its own disk counts only for what it was the last to lead.
_FORGET_WAL = """
    UPDATE partitions p SET wal_agent_id = ''
    FROM partition_leases l, unnest($1::uuid[], $2::int[], $3::bigint[]) AS held (topic_id, partition_id, epoch)
    WHERE p.topic_id = held.topic_id AND p.partition_id = held.partition_id AND p.wal_agent_id = $4
        AND l.topic = p.topic AND l.partition_id = p.partition_id
        AND l.leader_agent_id = $4 AND l.epoch = held.epoch
"""


class PostgresLeases:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire_leases(
        self, agent_id: str, partitions: Sequence[TopicPartition], ttl_ms: int
    ) -> list[Lease | None]:
        check_text("agent id", agent_id)
        check_ttl(ttl_ms)

        async def work(connection: Connection) -> list[Lease | None]:
            # Locked, so that the leader that we may take over from cannot begin to write to its own disk meanwhile.
            open_to_us = {
                (row["topic"], row["partition_id"]): to_partition(row)
                for row in await lock_partitions(connection, partitions)
                if row["wal_agent_id"] in ("", agent_id)
            }
            topics, numbers = [topic for topic, _ in open_to_us], [number for _, number in open_to_us]
            asked = await connection.fetch(_LOCK_ASKED, topics, numbers)
            before = {(row["topic"], row["partition_id"]): row for row in asked}
            granted = {}
            taken_over = TakenOver(agent_id)
            for row in await connection.fetch(_ACQUIRE, topics, numbers, agent_id, ttl_ms):
                key = row["topic"], row["partition_id"]
                granted[open_to_us[key]] = _to_lease(open_to_us[key], agent_id, row)
                if key in before:
                    taken_over.from_holder(before[key]["leader_agent_id"], before[key]["lease_expires_at"])
            await find_dead(connection, taken_over.lapsed)
            return [granted.get(partition) for partition in partitions]

        return await self._database.transact(work)

    async def renew_leases(self, agent_id: str, leases: Sequence[Lease], ttl_ms: int) -> list[Lease | None]:
        check_ttl(ttl_ms)

        async def work(connection: Connection) -> list[Lease | None]:
            held = _held(leases)
            await connection.execute(_LOCK_HELD, *held, agent_id)
            renewed = {}
            for row in await connection.fetch(_RENEW, *held, agent_id, ttl_ms):
                partition = to_partition(row)
                renewed[partition, row["epoch"]] = _to_lease(partition, agent_id, row)
            return [renewed.get((lease.partition, lease.epoch)) for lease in leases]

        return await self._database.transact(work, is_urgent=True)

    async def release_leases(self, agent_id: str, leases: Sequence[Lease], *, drained: bool) -> None:
        async def work(connection: Connection) -> None:
            held = _held(leases)
            if drained:
                await lock_partitions(connection, (lease.partition for lease in leases))
            await connection.execute(_LOCK_HELD, *held, agent_id)
            if drained:
                await connection.execute(_FORGET_WAL, *held, agent_id)
            await connection.execute(_RELEASE, *held, agent_id)

        await self._database.transact(work)


def _held(leases: Sequence[Lease]) -> tuple[list[UUID], list[int], list[int]]:
    return *columns(lease.partition for lease in leases), [lease.epoch for lease in leases]


def _to_lease(partition: TopicPartition, agent_id: str, row: Any) -> Lease:
    return Lease(partition=partition, agent_id=agent_id, epoch=row["epoch"], expires_at_ms=row["lease_expires_at"])
