"""The agents of the cluster in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import replace

from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.cluster import AgentInfo, AgentRow, Change
from streamhouse.metadata.registration import AgentDetails, check_agent, check_durability, choose_node_id
from streamhouse.metadata.sqlite.database import Database
from streamhouse.model.errors import NotFound

_REGISTER = """
    INSERT INTO agents (agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata)
    VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (agent_id) DO UPDATE SET
        address = excluded.address, availability_zone = excluded.availability_zone,
        agent_group = excluded.agent_group, last_heartbeat = excluded.last_heartbeat,
        started_at = excluded.started_at, metadata = excluded.metadata
"""
_KEEP_NODE_ID = """
    INSERT INTO agent_nodes (agent_id, node_id) VALUES (?, ?)
    ON CONFLICT (agent_id) DO UPDATE SET node_id = excluded.node_id
"""
_LIST = """
    SELECT a.agent_id, a.address, a.availability_zone, a.agent_group, a.last_heartbeat, a.started_at, a.metadata,
        coalesce(a.last_heartbeat = dead.last_heartbeat, 0)
    FROM agents a LEFT JOIN found_dead dead USING (agent_id) ORDER BY a.agent_id
"""
# Who was heard of after its lease ran out is alive, and was only slow.
_FIND_DEAD = """
    INSERT INTO found_dead (agent_id, last_heartbeat)
    SELECT agent_id, last_heartbeat FROM agents WHERE agent_id = ? AND last_heartbeat < ?
    ON CONFLICT (agent_id) DO UPDATE SET last_heartbeat = excluded.last_heartbeat
"""
_FIND_ALIVE = "DELETE FROM found_dead WHERE agent_id = ?"


class SqliteAgents:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def register_agent(self, info: AgentInfo, node_id: int) -> AgentRow:
        check_agent(info, node_id)

        def work(connection: sqlite3.Connection) -> AgentRow:
            now_ms = self._database.now_ms()
            given = _give_node_id(connection, info.agent_id, node_id)
            details = AgentDetails(
                node_id=given, kafka_address=info.kafka_address, is_draining=False, durability=info.durability
            )
            values = (info.agent_id, info.address, info.zone, info.agent_group, now_ms, now_ms, details.to_json())
            connection.execute(_REGISTER, values)
            connection.execute(_FIND_ALIVE, (info.agent_id,))
            return AgentRow(info=info, node_id=given, started_at_ms=now_ms, silent_ms=0, is_draining=False)

        return await self._database.write(work, Change.AGENTS)

    async def heartbeat_agent(self, agent_id: str) -> bool:
        def work(connection: sqlite3.Connection) -> tuple[bool, bool]:
            values = (self._database.now_ms(), agent_id)
            beaten = connection.execute("UPDATE agents SET last_heartbeat = ? WHERE agent_id = ?", values).rowcount > 0
            return beaten, connection.execute(_FIND_ALIVE, (agent_id,)).rowcount > 0

        is_registered, was_dead = await self._database.write(work)
        if was_dead:
            self._database.subscribers.report(Change.AGENTS)
        return is_registered

    async def list_agents(self) -> list[AgentRow]:
        def work(connection: sqlite3.Connection) -> list[AgentRow]:
            now_ms = self._database.now_ms()
            return [_to_agent(row, now_ms) for row in connection.execute(_LIST)]

        return await self._database.read(work)

    async def drain_agent(self, agent_id: str) -> None:
        await self._change(agent_id, lambda details: replace(details, is_draining=True))

    async def say_store_access(self, agent_id: str, access: StoreAccess) -> None:
        await self._change(agent_id, lambda details: replace(details, store_access=access))

    async def say_durability(self, agent_id: str, durability: str) -> None:
        check_durability(durability)
        await self._change(agent_id, lambda details: replace(details, durability=durability))

    async def _change(self, agent_id: str, change: Callable[[AgentDetails], AgentDetails]) -> None:
        def work(connection: sqlite3.Connection) -> None:
            row = connection.execute("SELECT metadata FROM agents WHERE agent_id = ?", (agent_id,)).fetchone()
            if row is None:
                raise NotFound(f"no agent {agent_id!r}")
            details = change(AgentDetails.from_json(row[0]))
            connection.execute("UPDATE agents SET metadata = ? WHERE agent_id = ?", (details.to_json(), agent_id))

        await self._database.write(work, Change.AGENTS)

    async def deregister_agent(self, agent_id: str) -> None:
        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM agents WHERE agent_id = ?", (agent_id,))

        await self._database.write(work, Change.AGENTS)


def find_dead(connection: sqlite3.Connection, lapsed: Mapping[str, int]) -> None:
    """By agent: when a lease ran out that another takes over in this transaction."""
    connection.executemany(_FIND_DEAD, lapsed.items())


def _give_node_id(connection: sqlite3.Connection, agent_id: str, asked: int) -> int:
    own = connection.execute("SELECT node_id FROM agent_nodes WHERE agent_id = ?", (agent_id,)).fetchone()
    holder = connection.execute("SELECT agent_id FROM agent_nodes WHERE node_id = ?", (asked,)).fetchone()
    (unused,) = connection.execute("SELECT next_node_id FROM node_ids").fetchone()
    given = choose_node_id(agent_id, asked, own=own and own[0], holder=holder and holder[0], unused=unused)
    connection.execute(_KEEP_NODE_ID, (agent_id, given))
    connection.execute("UPDATE node_ids SET next_node_id = max(next_node_id, ?)", (given + 1,))
    return given


def _to_agent(row: tuple[str, str, str, str, int, int, str, int], now_ms: int) -> AgentRow:
    agent_id, address, zone, agent_group, last_heartbeat, started_at, metadata, is_found_dead = row
    details = AgentDetails.from_json(metadata)
    return AgentRow(
        info=AgentInfo(
            agent_id=agent_id,
            address=address,
            kafka_address=details.kafka_address,
            zone=zone,
            agent_group=agent_group,
            durability=details.durability,
        ),
        node_id=details.node_id,
        started_at_ms=started_at,
        silent_ms=max(0, now_ms - last_heartbeat),
        is_draining=details.is_draining,
        is_found_dead=bool(is_found_dead),
        store_access=details.store_access,
    )
