"""Leases of coordinator shards in PostgreSQL, judged by its clock.

A change of a group holds its shard's lease FOR KEY SHARE: many go on at once, and a renewal, which touches no key,
never waits for them. A grant takes the row FOR UPDATE, so it waits for the changes that are under way, and those that
come later wait for it and see its epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streamhouse.metadata.checks import check_text, check_ttl
from streamhouse.metadata.coordination import CoordinatedShard, check_shards, require_coordinator
from streamhouse.metadata.groups import ShardLease
from streamhouse.metadata.postgres.agents import find_dead
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.registration import TakenOver

# Judged on the row as it is when its lock is ours: of two that ask at once, one sees the other's.
_LOCK_FREE = """
    SELECT shard, leader_agent_id, lease_expires_at FROM coordinator_leases
    WHERE shard = ANY($1::int[]) AND (lease_expires_at <= now_ms() OR leader_agent_id = $2)
    ORDER BY shard FOR UPDATE
"""
_ACQUIRE = """
    UPDATE coordinator_leases
    SET leader_agent_id = $2, lease_expires_at = now_ms() + $3::bigint, acquired_at = now_ms(), epoch = epoch + 1,
        claimed_by = '', claim_expires_at = 0
    WHERE shard = ANY($1::int[])
    RETURNING shard, epoch, lease_expires_at
"""
_LOCK_HELD = """
    SELECT FROM coordinator_leases l JOIN unnest($1::int[], $2::bigint[]) AS held (shard, epoch) USING (shard, epoch)
    WHERE l.leader_agent_id = $3 ORDER BY l.shard FOR NO KEY UPDATE OF l
"""
_RENEW = """
    UPDATE coordinator_leases l SET lease_expires_at = now_ms() + $4::bigint
    FROM unnest($1::int[], $2::bigint[]) AS held (shard, epoch)
    WHERE l.shard = held.shard AND l.epoch = held.epoch AND l.leader_agent_id = $3 AND l.lease_expires_at > now_ms()
    RETURNING l.shard, l.epoch, l.lease_expires_at
"""
# Zero and not `now`: a clock that steps back must not bring a released lease to life.
_RELEASE = """
    UPDATE coordinator_leases l SET lease_expires_at = 0
    FROM unnest($1::int[], $2::bigint[]) AS held (shard, epoch)
    WHERE l.shard = held.shard AND l.epoch = held.epoch AND l.leader_agent_id = $3
"""
_LOCK_CLAIMED = """
    SELECT shard FROM coordinator_leases WHERE shard = ANY($1::int[]) AND leader_agent_id <> $2
    ORDER BY shard FOR NO KEY UPDATE
"""
_CLAIM = """
    UPDATE coordinator_leases SET claimed_by = $2, claim_expires_at = now_ms() + $3::bigint
    WHERE shard = ANY($1::int[])
"""
_HOLD_LEASE = """
    SELECT leader_agent_id, epoch, lease_expires_at > now_ms() AS is_live
    FROM coordinator_leases WHERE shard = $1 FOR KEY SHARE
"""


class PostgresCoordinators:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> list[ShardLease | None]:
        check_text("agent id", agent_id)
        check_ttl(ttl_ms)
        check_shards(shards)

        async def work(connection: Connection) -> list[ShardLease | None]:
            locked = await connection.fetch(_LOCK_FREE, list(shards), agent_id)
            free = [row["shard"] for row in locked]
            taken_over = TakenOver(agent_id)
            for row in locked:
                taken_over.from_holder(row["leader_agent_id"], row["lease_expires_at"])
            granted = {
                row["shard"]: _to_lease(agent_id, row)
                for row in await connection.fetch(_ACQUIRE, free, agent_id, ttl_ms)
            }
            await find_dead(connection, taken_over.lapsed)
            return [granted.get(shard) for shard in shards]

        return await self._database.transact(work)

    async def renew_shards(self, agent_id: str, leases: Sequence[ShardLease], ttl_ms: int) -> list[ShardLease | None]:
        check_ttl(ttl_ms)

        async def work(connection: Connection) -> list[ShardLease | None]:
            held = _held(leases)
            await connection.execute(_LOCK_HELD, *held, agent_id)
            renewed = {
                (row["shard"], row["epoch"]): _to_lease(agent_id, row)
                for row in await connection.fetch(_RENEW, *held, agent_id, ttl_ms)
            }
            return [renewed.get((lease.shard, lease.epoch)) for lease in leases]

        return await self._database.transact(work, is_urgent=True)

    async def release_shards(self, agent_id: str, leases: Sequence[ShardLease]) -> None:
        async def work(connection: Connection) -> None:
            held = _held(leases)
            await connection.execute(_LOCK_HELD, *held, agent_id)
            await connection.execute(_RELEASE, *held, agent_id)

        await self._database.transact(work)

    async def claim_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> None:
        check_text("agent id", agent_id)
        check_ttl(ttl_ms)
        check_shards(shards)

        async def work(connection: Connection) -> None:
            of_others = [row["shard"] for row in await connection.fetch(_LOCK_CLAIMED, list(shards), agent_id)]
            await connection.execute(_CLAIM, of_others, agent_id, ttl_ms)

        await self._database.transact(work)


async def hold_lease(connection: Connection, lease: ShardLease) -> None:
    """StaleEpoch unless it is live; nobody else is granted the shard before this transaction ends."""
    row = await connection.fetchrow(_HOLD_LEASE, lease.shard)
    shard = row and CoordinatedShard(
        leader_agent_id=row["leader_agent_id"], epoch=row["epoch"], lease_is_live=row["is_live"]
    )
    require_coordinator(shard, lease)


def _held(leases: Sequence[ShardLease]) -> tuple[list[int], list[int]]:
    return [lease.shard for lease in leases], [lease.epoch for lease in leases]


def _to_lease(agent_id: str, row: Any) -> ShardLease:
    return ShardLease(shard=row["shard"], agent_id=agent_id, epoch=row["epoch"], expires_at_ms=row["lease_expires_at"])
