"""Which migrations are due."""

from __future__ import annotations

import pytest

from streamhouse.metadata.migrations import Migration, due_migrations, load_migrations
from streamhouse.model.errors import InvalidConfig

KNOWN = tuple(Migration(version=number, name=f"step_{number}", sql="") for number in (1, 2, 3))


def test_an_empty_database_needs_all_in_order() -> None:
    assert due_migrations(KNOWN, []) == KNOWN


def test_only_what_was_not_applied_is_due() -> None:
    assert due_migrations(KNOWN, [1, 2]) == KNOWN[2:]
    assert due_migrations(KNOWN, [1, 2, 3]) == ()


def test_a_database_that_is_ahead_is_refused_with_both_versions() -> None:
    with pytest.raises(InvalidConfig, match="version 4, and this version of streamhouse knows only 3"):
        due_migrations(KNOWN, [1, 2, 3, 4])


def test_both_databases_have_the_same_steps() -> None:
    sqlite = load_migrations("streamhouse.metadata.sqlite.migrations")
    postgres = load_migrations("streamhouse.metadata.postgres.migrations")
    assert [(step.version, step.name) for step in sqlite] == [(step.version, step.name) for step in postgres]
    assert sqlite[0].name == "initial"
