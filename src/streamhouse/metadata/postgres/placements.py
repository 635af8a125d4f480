"""Where partitions and coordinator shards are, in PostgreSQL, and what an operator says about it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from streamhouse.core.placement.assignment import Candidate
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.metadata.checks import check_text
from streamhouse.metadata.cluster import OwnerDecision, Placement, ShardPlacement
from streamhouse.metadata.leadership import require_no_leader
from streamhouse.metadata.owners import agents_from_json, agents_to_json, check_owners
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.partitions import columns, lock_led, lock_partitions, to_partition
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition

_LIST = """
    SELECT p.topic, p.topic_id, p.partition_id, coalesce(l.leader_agent_id, '') AS agent_id,
        coalesce(l.epoch, 0) AS epoch, coalesce(l.lease_expires_at - clock.now, 0) AS lease_left_ms,
        p.wal_agent_id, p.pinned_to, p.log_start_offset, p.high_watermark,
        greatest(p.high_watermark, p.wal_end) AS durable_end, p.owner_agent_id, p.former_owner_id
    FROM partitions p LEFT JOIN partition_leases l USING (topic, partition_id), (SELECT now_ms() AS now) AS clock
    ORDER BY p.topic COLLATE "C", p.partition_id
"""
# Only those that there are: a row that somebody made by hand is nobody's to lead.
_LIST_SHARDS = """
    SELECT shard, leader_agent_id, epoch,
        CASE WHEN epoch = 0 THEN 0 ELSE lease_expires_at - now_ms() END AS lease_left_ms,
        CASE WHEN claim_expires_at > now_ms() THEN claimed_by ELSE '' END AS claimed_by
    FROM coordinator_leases WHERE shard >= 0 AND shard < $1 ORDER BY shard
"""
_DECIDE = "UPDATE owner_decisions SET version = version + 1, agents = $2 WHERE version = $1 RETURNING version"
_OWN = """
    UPDATE partitions p SET owner_agent_id = decided.owner, former_owner_id = CASE
        WHEN p.former_owner_id = decided.owner AND p.owner_agent_id = ANY($4::text[]) THEN '' ELSE p.owner_agent_id END
    FROM unnest($1::uuid[], $2::int[], $3::text[]) AS decided (topic_id, partition_id, owner)
    WHERE p.topic_id = decided.topic_id AND p.partition_id = decided.partition_id
"""
_PIN = "UPDATE partitions SET pinned_to = $3 WHERE topic_id = $1 AND partition_id = $2 RETURNING partition_id"
_WAL_AGENT = "SELECT wal_agent_id FROM partitions WHERE topic_id = $1 AND partition_id = $2"
_FORGET_WAL = "UPDATE partitions SET wal_agent_id = '' WHERE topic_id = $1 AND partition_id = $2"
# A clock that steps back must not bring the holder whose disk was given up to life.
_END_LEASE = """
    UPDATE partition_leases l SET lease_expires_at = 0 FROM partitions p
    WHERE p.topic_id = $1 AND p.partition_id = $2 AND l.topic = p.topic AND l.partition_id = p.partition_id
"""


class PostgresPlacements:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_placements(self) -> list[Placement]:
        async def work(connection: Connection) -> list[Placement]:
            return [_to_placement(row) for row in await connection.fetch(_LIST)]

        return await self._database.transact(work)

    async def list_shard_placements(self) -> list[ShardPlacement]:
        async def work(connection: Connection) -> list[ShardPlacement]:
            return [_to_shard_placement(row) for row in await connection.fetch(_LIST_SHARDS, SHARD_COUNT)]

        return await self._database.transact(work)

    async def load_owner_decision(self) -> OwnerDecision:
        async def work(connection: Connection) -> OwnerDecision:
            row = await connection.fetchrow("SELECT version, agents FROM owner_decisions")
            return OwnerDecision(version=row["version"], agents=agents_from_json(row["agents"]))

        return await self._database.transact(work)

    async def decide_owners(
        self, version: int, agents: Collection[Candidate], owners: Mapping[TopicPartition, str]
    ) -> bool:
        check_owners(agents, owners)

        async def work(connection: Connection) -> bool:
            # Of those who decide at once, the others wait here, and then find another version.
            if await connection.fetchval(_DECIDE, version, agents_to_json(agents)) is None:
                return False
            await lock_partitions(connection, owners)
            ids = [candidate.agent_id for candidate in agents]
            await connection.execute(_OWN, *columns(owners), list(owners.values()), ids)
            return True

        return await self._database.transact(work)

    async def pin_partition(self, partition: TopicPartition, agent_id: str) -> None:
        check_text("agent id", agent_id)

        async def work(connection: Connection) -> None:
            if await connection.fetchval(_PIN, partition.topic_id, partition.partition, agent_id) is None:
                raise NotFound(f"no partition {partition}")

        await self._database.transact(work)

    async def elect_unclean(self, partition: TopicPartition) -> str:
        key = (partition.topic_id, partition.partition)

        async def work(connection: Connection) -> str:
            led = (await lock_led(connection, [partition])).get(partition)
            if led is None:
                raise NotFound(f"no partition {partition}")
            require_no_leader(led, partition)
            given_up = await connection.fetchval(_WAL_AGENT, *key)
            await connection.execute(_FORGET_WAL, *key)
            await connection.execute(_END_LEASE, *key)
            return str(given_up)

        return await self._database.transact(work)


def _to_placement(row: Any) -> Placement:
    return Placement(
        topic=row["topic"],
        partition=to_partition(row),
        agent_id=row["agent_id"],
        epoch=row["epoch"],
        lease_left_ms=row["lease_left_ms"],
        wal_agent_id=row["wal_agent_id"],
        pinned_to=row["pinned_to"],
        log_start_offset=row["log_start_offset"],
        committed_end=row["high_watermark"],
        durable_end=row["durable_end"],
        owner=row["owner_agent_id"],
        former_owner=row["former_owner_id"],
    )


def _to_shard_placement(row: Any) -> ShardPlacement:
    return ShardPlacement(
        shard=row["shard"],
        agent_id=row["leader_agent_id"],
        epoch=row["epoch"],
        lease_left_ms=row["lease_left_ms"],
        claimed_by=row["claimed_by"],
    )
