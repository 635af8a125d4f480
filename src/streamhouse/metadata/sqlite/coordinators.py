"""Leases of coordinator shards in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from streamhouse.metadata.checks import check_text, check_ttl
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.coordination import CoordinatedShard, check_shards, require_coordinator
from streamhouse.metadata.groups import ShardLease
from streamhouse.metadata.registration import TakenOver
from streamhouse.metadata.sqlite.agents import find_dead
from streamhouse.metadata.sqlite.database import Database

_ACQUIRE = """
    UPDATE coordinator_leases
    SET leader_agent_id = :agent_id, lease_expires_at = :expires_at, acquired_at = :now, epoch = epoch + 1,
        claimed_by = '', claim_expires_at = 0
    WHERE shard = :shard AND (lease_expires_at <= :now OR leader_agent_id = :agent_id)
"""
_RENEW = """
    UPDATE coordinator_leases SET lease_expires_at = :expires_at
    WHERE shard = :shard AND leader_agent_id = :agent_id AND epoch = :epoch AND lease_expires_at > :now
"""
# Zero and not `now`: a clock that steps back must not bring a released lease to life.
_RELEASE = """
    UPDATE coordinator_leases SET lease_expires_at = 0
    WHERE shard = :shard AND leader_agent_id = :agent_id AND epoch = :epoch
"""
_CLAIM = """
    UPDATE coordinator_leases SET claimed_by = ?, claim_expires_at = ? WHERE shard = ? AND leader_agent_id <> ?
"""
_LEASE = "SELECT epoch, leader_agent_id, lease_expires_at FROM coordinator_leases WHERE shard = ?"


class SqliteCoordinators:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> list[ShardLease | None]:
        check_text("agent id", agent_id)
        check_ttl(ttl_ms)
        check_shards(shards)

        def work(connection: sqlite3.Connection) -> list[ShardLease | None]:
            now_ms = self._database.now_ms()
            # One that is asked for twice is granted once.
            taken_over = TakenOver(agent_id)
            granted = {
                shard: _acquire(connection, agent_id, shard, now_ms, ttl_ms, taken_over)
                for shard in dict.fromkeys(shards)
            }
            find_dead(connection, taken_over.lapsed)
            return [granted[shard] for shard in shards]

        return await self._database.write(work, Change.LEASES)

    async def renew_shards(self, agent_id: str, leases: Sequence[ShardLease], ttl_ms: int) -> list[ShardLease | None]:
        check_ttl(ttl_ms)

        def work(connection: sqlite3.Connection) -> list[ShardLease | None]:
            now_ms = self._database.now_ms()
            return [_renew(connection, agent_id, lease, now_ms, ttl_ms) for lease in leases]

        return await self._database.write(work)

    async def release_shards(self, agent_id: str, leases: Sequence[ShardLease]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                _RELEASE, ({"shard": lease.shard, "agent_id": agent_id, "epoch": lease.epoch} for lease in leases)
            )

        await self._database.write(work, Change.LEASES)

    async def claim_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> None:
        check_text("agent id", agent_id)
        check_ttl(ttl_ms)
        check_shards(shards)

        def work(connection: sqlite3.Connection) -> None:
            expires_at_ms = self._database.now_ms() + ttl_ms
            connection.executemany(_CLAIM, ((agent_id, expires_at_ms, shard, agent_id) for shard in shards))

        await self._database.write(work, Change.LEASES)


def require_lease(connection: sqlite3.Connection, lease: ShardLease, now_ms: int) -> None:
    row = connection.execute(
        "SELECT leader_agent_id, epoch, lease_expires_at FROM coordinator_leases WHERE shard = ?", (lease.shard,)
    ).fetchone()
    shard = row and CoordinatedShard(leader_agent_id=row[0], epoch=row[1], lease_is_live=row[2] > now_ms)
    require_coordinator(shard, lease)


def _acquire(
    connection: sqlite3.Connection, agent_id: str, shard: int, now_ms: int, ttl_ms: int, taken_over: TakenOver
) -> ShardLease | None:
    expires_at_ms = now_ms + ttl_ms
    values = {"shard": shard, "agent_id": agent_id, "now": now_ms, "expires_at": expires_at_ms}
    epoch, holder, held_until_ms = connection.execute(_LEASE, (shard,)).fetchone()
    if not connection.execute(_ACQUIRE, values).rowcount:
        return None
    taken_over.from_holder(holder, held_until_ms)
    return ShardLease(shard=shard, agent_id=agent_id, epoch=epoch + 1, expires_at_ms=expires_at_ms)


def _renew(
    connection: sqlite3.Connection, agent_id: str, lease: ShardLease, now_ms: int, ttl_ms: int
) -> ShardLease | None:
    expires_at_ms = now_ms + ttl_ms
    values = {
        "shard": lease.shard,
        "agent_id": agent_id,
        "epoch": lease.epoch,
        "now": now_ms,
        "expires_at": expires_at_ms,
    }
    if not connection.execute(_RENEW, values).rowcount:
        return None
    return ShardLease(shard=lease.shard, agent_id=agent_id, epoch=lease.epoch, expires_at_ms=expires_at_ms)
