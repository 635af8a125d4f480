"""The SQLite metadata store: its parts over one database, and the ids that the cluster hands out once."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from streamhouse.metadata.checks import check_count
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.cluster_id import new_cluster_id
from streamhouse.metadata.sqlite.agents import SqliteAgents
from streamhouse.metadata.sqlite.configs import SqliteConfigs
from streamhouse.metadata.sqlite.coordinators import SqliteCoordinators
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.groups import SqliteGroups
from streamhouse.metadata.sqlite.leases import SqliteLeases
from streamhouse.metadata.sqlite.pins import SqlitePins
from streamhouse.metadata.sqlite.placements import SqlitePlacements
from streamhouse.metadata.sqlite.replacements import SqliteReplacements
from streamhouse.metadata.sqlite.restore import SqliteRestore
from streamhouse.metadata.sqlite.segments import SqliteSegments
from streamhouse.metadata.sqlite.sinks import SqliteSinks
from streamhouse.metadata.sqlite.topics import SqliteTopics
from streamhouse.metadata.sqlite.totals import SqliteTotals
from streamhouse.metadata.sqlite.transfers import SqliteTransfers
from streamhouse.metadata.sqlite.wal_objects import SqliteWalObjects
from streamhouse.runtime.clock import Clock


class SqliteMetadataStore(
    SqliteTopics,
    SqliteSegments,
    SqliteReplacements,
    SqlitePins,
    SqliteLeases,
    SqliteCoordinators,
    SqliteGroups,
    SqliteAgents,
    SqlitePlacements,
    SqliteTransfers,
    SqliteWalObjects,
    SqliteSinks,
    SqliteRestore,
    SqliteTotals,
    SqliteConfigs,
):
    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    async def open(cls, path: str, clock: Clock) -> SqliteMetadataStore:
        """A file, made if it is not there, or `:memory:`; its schema is brought up to date."""
        database = Database(path, clock)
        await database.open()
        return cls(database)

    async def allocate_producer_ids(self, count: int) -> int:
        check_count("producer ids", count)

        def work(connection: sqlite3.Connection) -> int:
            (first,) = connection.execute("SELECT next_producer_id FROM producer_ids").fetchone()
            connection.execute("UPDATE producer_ids SET next_producer_id = ?", (first + count,))
            return int(first)

        return await self._database.write(work)

    async def cluster_id(self) -> str:
        def work(connection: sqlite3.Connection) -> str:
            connection.execute(
                "INSERT INTO cluster (singleton, cluster_id, created_at) VALUES (1, ?, ?) ON CONFLICT DO NOTHING",
                (new_cluster_id(), self._database.now_ms()),
            )
            (cluster_id,) = connection.execute("SELECT cluster_id FROM cluster").fetchone()
            return str(cluster_id)

        return await self._database.write(work)

    def subscribe(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        """Of what is done through this store: SQLite is for one process."""
        return self._database.subscribers.add(changed)

    async def close(self) -> None:
        await self._database.close()
