"""Partition leases in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from streamhouse.metadata.checks import check_text, check_ttl
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.registration import TakenOver
from streamhouse.metadata.sqlite.agents import find_dead
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.store import Lease
from streamhouse.model.names import TopicPartition

# A lease is found through its partition's topic id, so that one of another topic of that name is never touched.
_LEASE = """
    SELECT epoch, leader_agent_id, lease_expires_at FROM partition_leases WHERE partition_id = :partition
    AND topic = (SELECT topic FROM partitions WHERE topic_id = :topic_id AND partition_id = :partition)
"""
_RENEW = """
    UPDATE partition_leases SET lease_expires_at = :expires_at WHERE partition_id = :partition
    AND topic = (SELECT topic FROM partitions WHERE topic_id = :topic_id AND partition_id = :partition)
    AND leader_agent_id = :agent_id AND epoch = :epoch AND lease_expires_at > :now
"""
# Zero and not `now`: a clock that steps back must not bring a released lease to life.
_RELEASE = """
    UPDATE partition_leases SET lease_expires_at = 0 WHERE partition_id = :partition
    AND topic = (SELECT topic FROM partitions WHERE topic_id = :topic_id AND partition_id = :partition)
    AND leader_agent_id = :agent_id AND epoch = :epoch
"""
# What an agent says of its own disk counts only for what it was the last to lead.
_FORGET_WAL = """
    UPDATE partitions SET wal_agent_id = ''
    WHERE topic_id = :topic_id AND partition_id = :partition AND wal_agent_id = :agent_id AND EXISTS (
        SELECT 1 FROM partition_leases l
        WHERE l.topic = partitions.topic AND l.partition_id = partitions.partition_id
        AND l.leader_agent_id = :agent_id AND l.epoch = :epoch
    )
"""
_ACQUIRE = """
    INSERT INTO partition_leases (topic, partition_id, leader_agent_id, lease_expires_at, acquired_at, epoch)
    SELECT topic, partition_id, :agent_id, :expires_at, :now, 1
    FROM partitions
    WHERE topic_id = :topic_id AND partition_id = :partition AND wal_agent_id IN ('', :agent_id)
    ON CONFLICT (topic, partition_id) DO UPDATE SET
        leader_agent_id = excluded.leader_agent_id, lease_expires_at = excluded.lease_expires_at,
        acquired_at = excluded.acquired_at, epoch = epoch + 1
    WHERE lease_expires_at <= :now OR leader_agent_id = :agent_id
"""


class SqliteLeases:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire_leases(
        self, agent_id: str, partitions: Sequence[TopicPartition], ttl_ms: int
    ) -> list[Lease | None]:
        check_text("agent id", agent_id)
        check_ttl(ttl_ms)

        def work(connection: sqlite3.Connection) -> list[Lease | None]:
            now_ms = self._database.now_ms()
            # One that is asked for twice is granted once.
            taken_over = TakenOver(agent_id)
            granted = {
                partition: _acquire(connection, agent_id, partition, now_ms, ttl_ms, taken_over)
                for partition in dict.fromkeys(partitions)
            }
            find_dead(connection, taken_over.lapsed)
            return [granted[partition] for partition in partitions]

        return await self._database.write(work, Change.LEASES)

    async def renew_leases(self, agent_id: str, leases: Sequence[Lease], ttl_ms: int) -> list[Lease | None]:
        check_ttl(ttl_ms)

        def work(connection: sqlite3.Connection) -> list[Lease | None]:
            now_ms = self._database.now_ms()
            return [_renew(connection, agent_id, lease, now_ms, ttl_ms) for lease in leases]

        return await self._database.write(work)

    async def release_leases(self, agent_id: str, leases: Sequence[Lease], *, drained: bool) -> None:
        held = [_named(lease.partition, agent_id=agent_id, epoch=lease.epoch) for lease in leases]

        def work(connection: sqlite3.Connection) -> None:
            if drained:
                connection.executemany(_FORGET_WAL, held)
            connection.executemany(_RELEASE, held)

        await self._database.write(work, Change.LEASES)


def _acquire(
    connection: sqlite3.Connection,
    agent_id: str,
    partition: TopicPartition,
    now_ms: int,
    ttl_ms: int,
    taken_over: TakenOver,
) -> Lease | None:
    values = _named(partition, agent_id=agent_id, now=now_ms, expires_at=now_ms + ttl_ms)
    before = connection.execute(_LEASE, values).fetchone()
    if not connection.execute(_ACQUIRE, values).rowcount:
        return None
    if before is not None:
        taken_over.from_holder(before[1], before[2])
    epoch = connection.execute(_LEASE, values).fetchone()[0]
    return Lease(partition=partition, agent_id=agent_id, epoch=epoch, expires_at_ms=now_ms + ttl_ms)


def _renew(connection: sqlite3.Connection, agent_id: str, lease: Lease, now_ms: int, ttl_ms: int) -> Lease | None:
    expires_at_ms = now_ms + ttl_ms
    values = _named(lease.partition, agent_id=agent_id, epoch=lease.epoch, now=now_ms, expires_at=expires_at_ms)
    if not connection.execute(_RENEW, values).rowcount:
        return None
    return Lease(partition=lease.partition, agent_id=agent_id, epoch=lease.epoch, expires_at_ms=expires_at_ms)


def _named(partition: TopicPartition, **values: str | int) -> dict[str, str | int]:
    return {"topic_id": str(partition.topic_id), "partition": partition.partition, **values}
