"""Where partitions and coordinator shards are, in SQLite, and what an operator says about it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping

from streamhouse.core.placement.assignment import Candidate
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.metadata.checks import check_text
from streamhouse.metadata.cluster import Change, OwnerDecision, Placement, ShardPlacement
from streamhouse.metadata.leadership import require_no_leader
from streamhouse.metadata.owners import agents_from_json, agents_to_json, check_owners
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.partitions import find_led, key_of, to_partition
from streamhouse.model.errors import NotFound
from streamhouse.model.names import TopicPartition

_LIST = """
    SELECT p.topic, p.topic_id, p.partition_id, coalesce(l.leader_agent_id, ''), coalesce(l.epoch, 0),
        coalesce(l.lease_expires_at - ?, 0), p.wal_agent_id, p.pinned_to,
        p.log_start_offset, p.high_watermark, max(p.high_watermark, p.wal_end), p.owner_agent_id, p.former_owner_id
    FROM partitions p LEFT JOIN partition_leases l ON l.topic = p.topic AND l.partition_id = p.partition_id
    ORDER BY p.topic, p.partition_id
"""
# A clock that steps back must not bring the holder whose disk was given up to life.
_END_LEASE = """
    UPDATE partition_leases SET lease_expires_at = 0
    WHERE (topic, partition_id) = (SELECT topic, partition_id FROM partitions WHERE topic_id = ? AND partition_id = ?)
"""
# Only those that there are: a row that somebody made by hand is nobody's to lead.
_LIST_SHARDS = """
    SELECT shard, leader_agent_id, epoch, CASE WHEN epoch = 0 THEN 0 ELSE lease_expires_at - :now END,
        CASE WHEN claim_expires_at > :now THEN claimed_by ELSE '' END
    FROM coordinator_leases WHERE shard >= 0 AND shard < :count ORDER BY shard
"""
_DECIDE = "UPDATE owner_decisions SET version = version + 1, agents = ? WHERE version = ?"
_OWN = """
    UPDATE partitions SET owner_agent_id = ?1, former_owner_id = CASE
        WHEN former_owner_id = ?1 AND owner_agent_id IN (SELECT value FROM json_each(?4)) THEN ''
        ELSE owner_agent_id END
    WHERE topic_id = ?2 AND partition_id = ?3
"""


class SqlitePlacements:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_placements(self) -> list[Placement]:
        def work(connection: sqlite3.Connection) -> list[Placement]:
            return [_to_placement(row) for row in connection.execute(_LIST, (self._database.now_ms(),))]

        return await self._database.read(work)

    async def list_shard_placements(self) -> list[ShardPlacement]:
        def work(connection: sqlite3.Connection) -> list[ShardPlacement]:
            return [
                ShardPlacement(
                    shard=shard, agent_id=agent_id, epoch=epoch, lease_left_ms=lease_left_ms, claimed_by=claimed_by
                )
                for shard, agent_id, epoch, lease_left_ms, claimed_by in connection.execute(
                    _LIST_SHARDS, {"now": self._database.now_ms(), "count": SHARD_COUNT}
                )
            ]

        return await self._database.read(work)

    async def load_owner_decision(self) -> OwnerDecision:
        def work(connection: sqlite3.Connection) -> OwnerDecision:
            version, agents = connection.execute("SELECT version, agents FROM owner_decisions").fetchone()
            return OwnerDecision(version=version, agents=agents_from_json(agents))

        return await self._database.read(work)

    async def decide_owners(
        self, version: int, agents: Collection[Candidate], owners: Mapping[TopicPartition, str]
    ) -> bool:
        check_owners(agents, owners)

        def work(connection: sqlite3.Connection) -> bool:
            if not connection.execute(_DECIDE, (agents_to_json(agents), version)).rowcount:
                return False
            ids = json.dumps([candidate.agent_id for candidate in agents])
            connection.executemany(_OWN, ((owner, *key_of(partition), ids) for partition, owner in owners.items()))
            return True

        return await self._database.write(work, Change.LEASES)

    async def pin_partition(self, partition: TopicPartition, agent_id: str) -> None:
        check_text("agent id", agent_id)

        def work(connection: sqlite3.Connection) -> None:
            pinned = connection.execute(
                "UPDATE partitions SET pinned_to = ? WHERE topic_id = ? AND partition_id = ?",
                (agent_id, *key_of(partition)),
            ).rowcount
            if not pinned:
                raise NotFound(f"no partition {partition}")

        await self._database.write(work, Change.LEASES)

    async def elect_unclean(self, partition: TopicPartition) -> str:
        def work(connection: sqlite3.Connection) -> str:
            row = connection.execute(
                "SELECT wal_agent_id FROM partitions WHERE topic_id = ? AND partition_id = ?", key_of(partition)
            ).fetchone()
            if row is None:
                raise NotFound(f"no partition {partition}")
            require_no_leader(find_led(connection, [partition], self._database.now_ms())[partition], partition)
            connection.execute(
                "UPDATE partitions SET wal_agent_id = '' WHERE topic_id = ? AND partition_id = ?", key_of(partition)
            )
            connection.execute(_END_LEASE, key_of(partition))
            return str(row[0])

        return await self._database.write(work, Change.LEASES)


def _to_placement(row: tuple[str, str, int, str, int, int, str, str, int, int, int, str, str]) -> Placement:
    return Placement(
        topic=row[0],
        partition=to_partition(row[1], row[2]),
        agent_id=row[3],
        epoch=row[4],
        lease_left_ms=row[5],
        wal_agent_id=row[6],
        pinned_to=row[7],
        log_start_offset=row[8],
        committed_end=row[9],
        durable_end=row[10],
        owner=row[11],
        former_owner=row[12],
    )
