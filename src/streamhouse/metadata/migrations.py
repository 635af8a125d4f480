"""Numbered SQL files that bring a database to the schema of this code, and the rule for which of them are due."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib.resources import files

from streamhouse.model.errors import InvalidConfig

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    version: int
    name: str
    sql: str


def load_migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of a dialect, from the `NNNN_name.sql` files of its package, in order."""
    found = [
        Migration(version=int(match[1]), name=match[2], sql=file.read_text("utf-8"))
        for file in files(package).iterdir()
        if (match := _FILE.fullmatch(file.name))
    ]
    found.sort(key=lambda migration: migration.version)
    assert [migration.version for migration in found] == list(range(1, len(found) + 1)), "a number is missing or twice"
    return tuple(found)


def due_migrations(known: Collection[Migration], applied: Collection[int]) -> tuple[Migration, ...]:
    """What is still to be applied; a database that newer code has migrated is refused, for we cannot read it."""
    newest = max((migration.version for migration in known), default=0)
    ahead = max(applied, default=0)
    if ahead > newest:
        raise InvalidConfig(
            f"the metadata database has schema version {ahead}, and this version of streamhouse knows only {newest}",
            hint="run the newer streamhouse that migrated it",
        )
    return tuple(migration for migration in known if migration.version not in applied)
