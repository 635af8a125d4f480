"""One SQLite connection on one thread of its own: transactions go in, rows come out, errors become ours."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

from streamhouse.metadata.cluster import Change
from streamhouse.metadata.migrations import Migration, due_migrations, load_migrations
from streamhouse.metadata.subscribers import Subscribers
from streamhouse.model.errors import CorruptData, InvalidInput, MetadataUnavailable
from streamhouse.runtime.anchor import Anchor
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.privacy import make_private_directory, make_private_file, warn_if_open_to_others

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

_JOURNAL_TRIES = 10
_BUSY_TIMEOUT_SECONDS = 5.0
_MIGRATIONS = "streamhouse.metadata.sqlite.migrations"
# Primary result codes; sqlite3 reports extended ones, whose low byte they are.
_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NOT_NOW = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_NOMEM,
}


class Database:
    """SQLite runs in this process, so the database's clock is the clock that it is given."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")
        self._connection: sqlite3.Connection | None = None
        self._anchor: Anchor | None = None
        self._closed = False
        self.subscribers = Subscribers()

    async def open(self) -> None:
        try:
            await self._on_thread(self._open)
        except BaseException:
            await self.close()
            raise

    async def read(self, work: Work[T]) -> T:
        """Run `work` on one snapshot."""
        return await self._on_thread(lambda: self._transact("BEGIN", work))

    async def write(self, work: Work[T], *changes: Change) -> T:
        """Run `work` alone among writers; what it did is on disk when this returns, or undone when it raises. If it did
        something, subscribers are told of `changes`."""

        def counted(connection: sqlite3.Connection) -> tuple[T, int]:
            before = connection.total_changes
            return work(connection), connection.total_changes - before

        result, changed_rows = await self._on_thread(lambda: self._transact("BEGIN IMMEDIATE", counted))
        if changed_rows:
            self.subscribers.report(*changes)
        return result

    def now_ms(self) -> int:
        return self._clock.now_ms()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            closing = self._thread.submit(self._close)
            self._thread.shutdown(wait=False)
            await asyncio.wrap_future(closing)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        if self._closed:
            raise MetadataUnavailable("the metadata store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def _open(self) -> None:
        with our_errors(self._path):
            if self._path != ":memory:":
                _make_file(Path(self._path))
            # Autocommit: every transaction here begins and ends by its own statements.
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_TIMEOUT_SECONDS, isolation_level=None, cached_statements=256
            )
            self._connection = connection
            _use_write_ahead_log(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            if self._path != ":memory:":
                self._anchor = Anchor(self._path)
        self._migrate()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _migrate(self) -> None:
        known = load_migrations(_MIGRATIONS)
        for migration in due_migrations(known, self._transact("BEGIN IMMEDIATE", _applied_versions)):
            self._transact("BEGIN IMMEDIATE", partial(self._apply, migration))

    def _apply(self, migration: Migration, connection: sqlite3.Connection) -> None:
        if migration.version in _applied_versions(connection):
            return  # another process was faster
        for statement in _statements(migration.sql):
            connection.execute(statement)
        connection.execute(
            "INSERT INTO schema_migrations (version, name, applied_at) VALUES (?, ?, ?)",
            (migration.version, migration.name, self.now_ms()),
        )

    def _transact(self, begin: str, work: Work[T]) -> T:
        connection = self._connection
        assert connection is not None, "used before open()"
        with our_errors(self._path):
            connection.execute(begin)
            try:
                result = work(connection)
                self._check_there()
                connection.execute("COMMIT")
                self._check_there()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        return result

    def _check_there(self) -> None:
        """SQLite goes on writing to a file that has no name any more. Asked behind a commit as well: what was done just
        before the file was removed is gone with it."""
        if self._anchor is not None and not self._anchor.is_there:
            raise MetadataUnavailable(f"the metadata database {self._path} is gone: it was removed or replaced")


def _applied_versions(connection: sqlite3.Connection) -> set[int]:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL)"
    )
    return {version for (version,) in connection.execute("SELECT version FROM schema_migrations")}


def _statements(script: str) -> Iterator[str]:
    """`executescript` would commit on its own; a migration and its record must be one transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    assert not statement.strip(), "a migration ends in the middle of a statement"


def _make_file(path: Path) -> None:
    """SQLite itself would make one that everybody may read. Its other files get the mode of this one."""
    try:
        make_private_directory(path.parent)
        make_private_file(path)
    except OSError as problem:
        raise MetadataUnavailable(f"cannot make {path}: {problem.strerror}") from problem
    warn_if_open_to_others(path)


@contextmanager
def our_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OverflowError as problem:
        raise InvalidInput("a number does not fit into 64 bits") from problem
    except sqlite3.DatabaseError as problem:
        # Absent where the driver itself refused: that is a bug of ours, and so are the codes not named here.
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGED:
            raise CorruptData(
                f"the metadata database {path} is damaged: {problem}", hint="restore a backup"
            ) from problem
        if code in _NOT_NOW:
            raise MetadataUnavailable(f"the metadata database {path} is not usable now: {problem}") from problem
        raise


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Processes that open a new file at once may meet each other here, where SQLite does not wait by itself."""
    for _ in range(_JOURNAL_TRIES - 1):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            connection.execute("BEGIN IMMEDIATE")  # this does wait
            connection.execute("ROLLBACK")
    connection.execute("PRAGMA journal_mode = WAL")
