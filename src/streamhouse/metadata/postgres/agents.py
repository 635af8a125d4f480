"""The agents of the cluster in PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.cluster import AgentInfo, AgentRow
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.registration import AgentDetails, check_agent, check_durability, choose_node_id
from streamhouse.model.errors import NotFound

_REGISTER = """
    INSERT INTO agents (agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata)
    VALUES ($1, $2, $3, $4, now_ms(), now_ms(), $5)
    ON CONFLICT (agent_id) DO UPDATE SET
        address = excluded.address, availability_zone = excluded.availability_zone,
        agent_group = excluded.agent_group, last_heartbeat = excluded.last_heartbeat,
        started_at = excluded.started_at, metadata = excluded.metadata
    RETURNING started_at
"""
# Its lock also puts those who register at once one after the other.
_LOCK_UNUSED_NODE_ID = "SELECT next_node_id FROM node_ids FOR UPDATE"
_KEEP_NODE_ID = """
    INSERT INTO agent_nodes (agent_id, node_id) VALUES ($1, $2)
    ON CONFLICT (agent_id) DO UPDATE SET node_id = excluded.node_id
"""
_LIST = """
    SELECT a.agent_id, a.address, a.availability_zone, a.agent_group, a.started_at, a.metadata,
        greatest(now_ms() - a.last_heartbeat, 0) AS silent_ms,
        coalesce(a.last_heartbeat = dead.last_heartbeat, FALSE) AS is_found_dead
    FROM agents a LEFT JOIN found_dead dead USING (agent_id) ORDER BY a.agent_id COLLATE "C"
"""
# Who was heard of after its lease ran out is alive, and was only slow. Nobody removes the agent meanwhile; it may beat.
_FIND_DEAD = """
    INSERT INTO found_dead (agent_id, last_heartbeat)
    SELECT agent_id, last_heartbeat FROM agents WHERE agent_id = $1 AND last_heartbeat < $2 FOR KEY SHARE
    ON CONFLICT (agent_id) DO UPDATE SET last_heartbeat = excluded.last_heartbeat
"""
_FIND_ALIVE = "DELETE FROM found_dead WHERE agent_id = $1"


class PostgresAgents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def register_agent(self, info: AgentInfo, node_id: int) -> AgentRow:
        check_agent(info, node_id)

        async def work(connection: Connection) -> AgentRow:
            given = await _give_node_id(connection, info.agent_id, node_id)
            details = AgentDetails(
                node_id=given, kafka_address=info.kafka_address, is_draining=False, durability=info.durability
            )
            started_at_ms = await connection.fetchval(
                _REGISTER, info.agent_id, info.address, info.zone, info.agent_group, details.to_json()
            )
            await connection.execute(_FIND_ALIVE, info.agent_id)
            return AgentRow(info=info, node_id=given, started_at_ms=started_at_ms, silent_ms=0, is_draining=False)

        return await self._database.transact(work)

    async def heartbeat_agent(self, agent_id: str) -> bool:
        async def work(connection: Connection) -> bool:
            alive = await connection.fetchval(
                "UPDATE agents SET last_heartbeat = now_ms() WHERE agent_id = $1 RETURNING agent_id", agent_id
            )
            await connection.execute(_FIND_ALIVE, agent_id)
            return alive is not None

        return await self._database.transact(work, is_urgent=True)

    async def list_agents(self) -> list[AgentRow]:
        async def work(connection: Connection) -> list[AgentRow]:
            return [_to_agent(row) for row in await connection.fetch(_LIST)]

        return await self._database.transact(work)

    async def drain_agent(self, agent_id: str) -> None:
        await self._change(agent_id, lambda details: replace(details, is_draining=True))

    async def say_store_access(self, agent_id: str, access: StoreAccess) -> None:
        await self._change(agent_id, lambda details: replace(details, store_access=access))

    async def say_durability(self, agent_id: str, durability: str) -> None:
        check_durability(durability)
        await self._change(agent_id, lambda details: replace(details, durability=durability))

    async def _change(self, agent_id: str, change: Callable[[AgentDetails], AgentDetails]) -> None:
        async def work(connection: Connection) -> None:
            metadata = await connection.fetchval(
                "SELECT metadata FROM agents WHERE agent_id = $1 FOR NO KEY UPDATE", agent_id
            )
            if metadata is None:
                raise NotFound(f"no agent {agent_id!r}")
            details = change(AgentDetails.from_json(metadata))
            await connection.execute("UPDATE agents SET metadata = $2 WHERE agent_id = $1", agent_id, details.to_json())

        await self._database.transact(work)

    async def deregister_agent(self, agent_id: str) -> None:
        async def work(connection: Connection) -> None:
            await connection.execute("DELETE FROM agents WHERE agent_id = $1", agent_id)

        await self._database.transact(work)


async def find_dead(connection: Connection, lapsed: Mapping[str, int]) -> None:
    """By agent: when a lease ran out that another takes over in this transaction."""
    for agent_id, lease_expired_at_ms in lapsed.items():
        await connection.execute(_FIND_DEAD, agent_id, lease_expired_at_ms)


async def _give_node_id(connection: Connection, agent_id: str, asked: int) -> int:
    unused = await connection.fetchval(_LOCK_UNUSED_NODE_ID)
    own = await connection.fetchval("SELECT node_id FROM agent_nodes WHERE agent_id = $1", agent_id)
    holder = await connection.fetchval("SELECT agent_id FROM agent_nodes WHERE node_id = $1", asked)
    given = choose_node_id(agent_id, asked, own=own, holder=holder, unused=unused)
    await connection.execute(_KEEP_NODE_ID, agent_id, given)
    await connection.execute("UPDATE node_ids SET next_node_id = greatest(next_node_id, $1::bigint)", given + 1)
    return given


def _to_agent(row: Any) -> AgentRow:
    details = AgentDetails.from_json(row["metadata"])
    return AgentRow(
        info=AgentInfo(
            agent_id=row["agent_id"],
            address=row["address"],
            kafka_address=details.kafka_address,
            zone=row["availability_zone"],
            agent_group=row["agent_group"],
            durability=details.durability,
        ),
        node_id=details.node_id,
        started_at_ms=row["started_at"],
        silent_ms=row["silent_ms"],
        is_draining=details.is_draining,
        is_found_dead=row["is_found_dead"],
        store_access=details.store_access,
    )
