"""A small pool of PostgreSQL connections: transactions go in, rows come out, errors become ours.

Every transaction locks in one order, so that none waits for another in a circle: topics, then partitions (by topic id
and number), then leases (by topic name and number), then transfers (by id), then WAL objects with their ranges, then
the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias, TypeVar

import asyncpg
from asyncpg import exceptions as pg

from streamhouse.metadata.migrations import Migration, due_migrations, load_migrations
from streamhouse.metadata.postgres.silence import SilenceWatch
from streamhouse.model.errors import CorruptData, InvalidConfig, InvalidInput, MetadataUnavailable

T = TypeVar("T")
Connection: TypeAlias = Any
Work = Callable[[Connection], Awaitable[T]]

_MIGRATIONS = "streamhouse.metadata.postgres.migrations"
# Any number, as long as every version of this code uses the same.
_MIGRATION_LOCK = 0x53_54_52_4D
_POOL_SIZE = 8
_URGENT_POOL_SIZE = 2
_APPLICATION = "streamhouse"
_CONNECT_SECONDS = 5.0
# The server gives up first, so that its answer is known; ours is for a server that cannot be reached.
_COMMAND_SECONDS = 12.0
_SERVER_SETTINGS = {
    "application_name": _APPLICATION,
    "statement_timeout": "10s",
    "lock_timeout": "3s",
    # A process that is stopped in the middle of a transaction must not keep its successor waiting.
    "idle_in_transaction_session_timeout": "3s",
}

# The server rolled back, or we cannot know what it did; either way the same call may be made again.
LOST = (
    OSError,
    EOFError,  # asyncio's IncompleteReadError, of a connection that ends while it is being made
    pg.PostgresConnectionError,
    pg.InterfaceError,
    pg.InternalClientError,  # what came before the connection broke was not the whole of an answer
    pg.AdminShutdownError,
    pg.CrashShutdownError,
)
_ROLLED_BACK = (pg.TransactionRollbackError, pg.InvalidCachedStatementError)
# Classes of SQLSTATE that are about the server's state and not about the statement.
_NOT_NOW_CLASSES = ("08", "25", "40", "53", "55", "57", "58")
_REFUSED = (pg.InvalidAuthorizationSpecificationError, pg.InvalidCatalogNameError, pg.InsufficientPrivilegeError)


async def connect(dsn: str) -> Connection:
    """One connection of its own, beside the pool."""
    return await asyncpg.connect(
        dsn, timeout=_CONNECT_SECONDS, command_timeout=_COMMAND_SECONDS, server_settings=_SERVER_SETTINGS
    )


async def _make_pool(dsn: str, max_size: int) -> Any:
    """No connection is kept for its own sake: asyncpg would log each failure to restore it."""
    return await asyncpg.create_pool(
        dsn,
        min_size=0,
        max_size=max_size,
        timeout=_CONNECT_SECONDS,
        command_timeout=_COMMAND_SECONDS,
        server_settings=_SERVER_SETTINGS,
    )


# A process that is stopped between two messages of one statement is not idle to the server, which then waits for it for
# as long as it takes, with all its locks held.
_END_STALLED = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()
        AND wait_event = 'ClientRead' AND greatest(xact_start, state_change) < clock_timestamp() - interval '3s'
        AND xact_start IS NOT NULL
"""


class Database:
    def __init__(self, pool: Any, urgent: Any, dsn: str) -> None:
        """`urgent` is a pool for what must not wait until others are done."""
        self._pool = pool
        self._urgent = urgent
        self._silence = SilenceWatch(partial(connect, dsn), self._replace_connections)

    @classmethod
    async def open(cls, dsn: str) -> Database:
        """Connected, and its schema brought up to date. Errors never show the DSN, which has the password in it."""
        try:
            pool, urgent = await _make_pool(dsn, _POOL_SIZE), await _make_pool(dsn, _URGENT_POOL_SIZE)
            async with pool.acquire(timeout=_CONNECT_SECONDS):
                pass
        except _REFUSED as problem:
            raise InvalidConfig(
                f"PostgreSQL refuses us: {problem}", hint="check the user, the password and that the database exists"
            ) from None
        except (OSError, pg.PostgresError) as problem:
            raise MetadataUnavailable(
                f"cannot connect to PostgreSQL: {_describe(problem)}",
                hint="is it running, at that host and port?",
                is_unanswered=isinstance(problem, TimeoutError),
            ) from None
        except (ValueError, pg.InterfaceError):
            raise InvalidConfig(
                "the PostgreSQL URL is not usable", hint="write postgresql://user:password@host:port/database"
            ) from None
        database = cls(pool, urgent, dsn)
        try:
            await database._migrate()
        except BaseException:
            await database.close()
            raise
        return database

    async def transact(self, work: Work[T], *, is_urgent: bool = False) -> T:
        """Run `work` in one transaction. It may run twice: when the connection breaks, the first one may have been
        committed all the same, so `work` must be safe to repeat. What `is_urgent`, such as a renewal without which all
        else is in vain, does not wait for a connection that other work has."""
        pool = self._urgent if is_urgent else self._pool
        try:
            try:
                return await self._transact_once(pool, work)
            except TimeoutError:
                raise  # it took long enough: the caller decides
            except pg.LockNotAvailableError:
                await self._end_stalled()
                return await self._transact_once(pool, work)
            except (*LOST, *_ROLLED_BACK) as problem:
                if isinstance(problem, pg.DataError):
                    raise
                return await self._transact_once(pool, work)
        except Exception as problem:
            ours = _to_our_error(problem)
            if ours is None:
                raise
            raise ours from problem

    async def _end_stalled(self) -> None:
        """End transactions of processes that keep everybody waiting and do nothing; they learn it when they go on."""
        async with self._pool.acquire(timeout=_CONNECT_SECONDS) as connection:
            await connection.execute(_END_STALLED, _APPLICATION)

    async def close(self) -> None:
        await self._silence.close()
        for pool in (self._urgent, self._pool):
            try:
                await asyncio.wait_for(pool.close(), _CONNECT_SECONDS)
            except (TimeoutError, *LOST):
                pool.terminate()

    async def _replace_connections(self) -> None:
        """Each when it is next needed."""
        for pool in (self._urgent, self._pool):
            await pool.expire_connections()

    async def _transact_once(self, pool: Any, work: Work[T]) -> T:
        async with pool.acquire(timeout=_CONNECT_SECONDS) as connection:
            with self._silence.over(connection):
                return await self._transact_on(connection, work)

    async def _transact_on(self, connection: Connection, work: Work[T]) -> T:
        transaction = connection.transaction(isolation="read_committed")
        try:
            await transaction.start()
            result = await work(connection)
            await transaction.commit()
        except (asyncio.CancelledError, *LOST):
            # A rollback would wait for a server that may not answer; without us it rolls back by itself. If the
            # pool has noticed before us, there is nothing left to end, and what happened first is what to tell.
            with suppress(pg.InterfaceError):
                connection.terminate()
            raise
        except BaseException:
            await transaction.rollback()
            raise
        return result

    async def _migrate(self) -> None:
        known = load_migrations(_MIGRATIONS)
        for migration in due_migrations(known, await self.transact(_applied_versions)):
            await self.transact(partial(_apply, migration))


async def _applied_versions(connection: Connection) -> set[int]:
    """Under a lock that lasts to the end of the transaction: concurrent openers migrate one after the other."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
    await connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_migrations"
        " (version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at BIGINT NOT NULL)"
    )
    return {row["version"] for row in await connection.fetch("SELECT version FROM schema_migrations")}


async def _apply(migration: Migration, connection: Connection) -> None:
    if migration.version in await _applied_versions(connection):
        return  # another process was faster
    await connection.execute(migration.sql)
    await connection.execute(
        "INSERT INTO schema_migrations (version, name, applied_at) VALUES ($1, $2, now_ms())",
        migration.version,
        migration.name,
    )


def _to_our_error(problem: Exception) -> Exception | None:
    if isinstance(problem, pg.DataError | pg.NumericValueOutOfRangeError):
        return InvalidInput(f"a value cannot be stored: {_describe(problem)}")
    if isinstance(problem, pg.DataCorruptedError | pg.IndexCorruptedError):
        return CorruptData(f"PostgreSQL reports damage: {problem}", hint="restore a backup")
    if isinstance(problem, LOST + _ROLLED_BACK + _REFUSED):
        return MetadataUnavailable(
            f"the connection to PostgreSQL broke: {_describe(problem)}",
            is_unanswered=isinstance(problem, TimeoutError),
        )
    if isinstance(problem, pg.PostgresError) and str(problem.sqlstate)[:2] in _NOT_NOW_CLASSES:
        return MetadataUnavailable(f"PostgreSQL cannot do it now: {_describe(problem)}")
    return None  # a bug of ours, or an error that is ours already


def _describe(problem: Exception) -> str:
    if isinstance(problem, TimeoutError):
        return "no answer in time"
    return str(problem) or type(problem).__name__
