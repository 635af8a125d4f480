"""The PostgreSQL metadata store: its parts over one database, and the ids that the cluster hands out once."""

from __future__ import annotations

from collections.abc import Callable

from streamhouse.metadata.checks import check_count
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.cluster_id import new_cluster_id
from streamhouse.metadata.postgres.agents import PostgresAgents
from streamhouse.metadata.postgres.changes import ChangeListener
from streamhouse.metadata.postgres.configs import PostgresConfigs
from streamhouse.metadata.postgres.coordinators import PostgresCoordinators
from streamhouse.metadata.postgres.database import Connection, Database
from streamhouse.metadata.postgres.groups import PostgresGroups
from streamhouse.metadata.postgres.leases import PostgresLeases
from streamhouse.metadata.postgres.pins import PostgresPins
from streamhouse.metadata.postgres.placements import PostgresPlacements
from streamhouse.metadata.postgres.replacements import PostgresReplacements
from streamhouse.metadata.postgres.restore import PostgresRestore
from streamhouse.metadata.postgres.segments import PostgresSegments
from streamhouse.metadata.postgres.sinks import PostgresSinks
from streamhouse.metadata.postgres.topics import PostgresTopics
from streamhouse.metadata.postgres.totals import PostgresTotals
from streamhouse.metadata.postgres.transfers import PostgresTransfers
from streamhouse.metadata.postgres.wal_objects import PostgresWalObjects


class PostgresMetadataStore(
    PostgresTopics,
    PostgresSegments,
    PostgresReplacements,
    PostgresPins,
    PostgresLeases,
    PostgresCoordinators,
    PostgresGroups,
    PostgresAgents,
    PostgresPlacements,
    PostgresTransfers,
    PostgresWalObjects,
    PostgresSinks,
    PostgresRestore,
    PostgresTotals,
    PostgresConfigs,
):
    def __init__(self, database: Database, listener: ChangeListener) -> None:
        self._database = database
        self._listener = listener

    @classmethod
    async def open(cls, dsn: str) -> PostgresMetadataStore:
        """The database must exist; its schema is brought up to date."""
        return cls(await Database.open(dsn), ChangeListener(dsn))

    async def allocate_producer_ids(self, count: int) -> int:
        check_count("producer ids", count)

        async def work(connection: Connection) -> int:
            after = await connection.fetchval(
                "UPDATE producer_ids SET next_producer_id = next_producer_id + $1::bigint RETURNING next_producer_id",
                count,
            )
            return int(after) - count

        return await self._database.transact(work)

    async def cluster_id(self) -> str:
        async def work(connection: Connection) -> str:
            await connection.execute(
                "INSERT INTO cluster (singleton, cluster_id, created_at) VALUES (1, $1, now_ms())"
                " ON CONFLICT DO NOTHING",
                new_cluster_id(),
            )
            return str(await connection.fetchval("SELECT cluster_id FROM cluster"))

        return await self._database.transact(work)

    def subscribe(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        return self._listener.subscribe(changed)

    async def close(self) -> None:
        await self._listener.close()
        await self._database.close()
