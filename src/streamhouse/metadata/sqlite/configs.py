"""Configs that are set while the node runs, in SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from streamhouse.metadata.checks import check_config_changes, check_text
from streamhouse.metadata.cluster import Change
from streamhouse.metadata.configs import MAX_CONFIGURED, ConfigKind, Configured, too_many_configured
from streamhouse.metadata.sqlite.database import Database


class SqliteConfigs:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def list_configs(self) -> dict[Configured, dict[str, str]]:
        def work(connection: sqlite3.Connection) -> dict[Configured, dict[str, str]]:
            found: dict[Configured, dict[str, str]] = {}
            for kind, name, config_name, value in connection.execute(
                "SELECT kind, name, config_name, value FROM dynamic_configs ORDER BY kind, name, config_name"
            ):
                found.setdefault(Configured(ConfigKind(kind), name), {})[config_name] = value
            return found

        return await self._database.read(work)

    async def set_configs(self, configured: Configured, changes: Mapping[str, str | None]) -> None:
        check_text(f"{configured.kind.value} name", configured.name)
        check_config_changes(changes)
        key = (configured.kind.value, configured.name)

        def work(connection: sqlite3.Connection) -> None:
            for config_name, value in changes.items():
                connection.execute(
                    "DELETE FROM dynamic_configs WHERE kind = ? AND name = ? AND config_name = ?", (*key, config_name)
                )
                if value is not None:
                    connection.execute(
                        "INSERT INTO dynamic_configs (kind, name, config_name, value) VALUES (?, ?, ?, ?)",
                        (*key, config_name, value),
                    )
            (count,) = connection.execute(
                "SELECT count(*) FROM (SELECT DISTINCT kind, name FROM dynamic_configs)"
            ).fetchone()
            if count > MAX_CONFIGURED:
                raise too_many_configured()

        await self._database.write(work, Change.CONFIGS)
