"""Configs that are set while nodes run, in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping

from streamhouse.metadata.checks import check_config_changes, check_text
from streamhouse.metadata.configs import MAX_CONFIGURED, ConfigKind, Configured, too_many_configured
from streamhouse.metadata.postgres.database import Connection, Database

_SET = """
    INSERT INTO dynamic_configs (kind, name, config_name, value)
    SELECT $1, $2, config_name, value FROM unnest($3::text[], $4::text[]) AS new (config_name, value)
    ON CONFLICT (kind, name, config_name) DO UPDATE SET value = excluded.value
"""


class PostgresConfigs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_configs(self) -> dict[Configured, dict[str, str]]:
        async def work(connection: Connection) -> dict[Configured, dict[str, str]]:
            found: dict[Configured, dict[str, str]] = {}
            for kind, name, config_name, value in await connection.fetch(
                "SELECT kind, name, config_name, value FROM dynamic_configs"
                ' ORDER BY kind, name COLLATE "C", config_name COLLATE "C"'
            ):
                found.setdefault(Configured(ConfigKind(kind), name), {})[config_name] = value
            return found

        return await self._database.transact(work)

    async def set_configs(self, configured: Configured, changes: Mapping[str, str | None]) -> None:
        check_text(f"{configured.kind.value} name", configured.name)
        check_config_changes(changes)
        new = {name: value for name, value in sorted(changes.items()) if value is not None}

        async def work(connection: Connection) -> None:
            await connection.execute(
                "DELETE FROM dynamic_configs WHERE kind = $1 AND name = $2 AND config_name = ANY($3::text[])",
                configured.kind.value,
                configured.name,
                [name for name, value in changes.items() if value is None],
            )
            await connection.execute(_SET, configured.kind.value, configured.name, list(new), list(new.values()))
            count = await connection.fetchval("SELECT count(DISTINCT (kind, name)) FROM dynamic_configs")
            if count > MAX_CONFIGURED:
                raise too_many_configured()

        await self._database.transact(work)
