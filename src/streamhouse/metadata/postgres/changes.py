"""What PostgreSQL tells of changes (its triggers notify): a connection of its own that listens, and heals."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from asyncpg import exceptions as pg

from streamhouse.metadata.cluster import Change
from streamhouse.metadata.postgres.database import LOST, Connection, connect
from streamhouse.metadata.subscribers import Subscribers
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)

_CHANNEL = "streamhouse_changes"
_CHECK_SECONDS = 10.0
_ANSWER_SECONDS = 5.0
_LOST = (*LOST, pg.PostgresError)


class ChangeListener:
    """Connects when somebody first subscribes, and stays connected until it is closed."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._subscribers = Subscribers()
        self._tasks = TaskGroup("postgres-changes")
        self._is_closed = False
        # Never a clock that a test moves: the server that this waits for lives in real time.
        self._clock = SystemClock()

    def subscribe(self, changed: Callable[[Change], None]) -> Callable[[], None]:
        if not self._tasks and not self._is_closed:
            self._tasks.keep(self._stay_connected, "listen")
        return self._subscribers.add(changed)

    async def close(self) -> None:
        self._is_closed = True
        await self._tasks.cancel()

    async def _stay_connected(self) -> None:
        waits = backoff_ms()
        while True:
            try:
                connection = await connect(self._dsn)
                waits = backoff_ms()
                await self._listen(connection)
                _log.info("the connection for changes was closed by PostgreSQL; connecting again")
            except _LOST as problem:
                _log.info("no news of changes from PostgreSQL (%s); connecting again", type(problem).__name__)
            await self._clock.sleep_ms(next(waits))

    async def _listen(self, connection: Connection) -> None:
        """Until the connection is lost, which may show only when nothing answers any more."""
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        try:
            await connection.add_listener(_CHANNEL, self._received)
            # Nobody knows what happened before.
            self._subscribers.report(*Change)
            while not lost.is_set():
                try:
                    await asyncio.wait_for(lost.wait(), _CHECK_SECONDS)
                except TimeoutError:
                    await connection.execute("SELECT 1", timeout=_ANSWER_SECONDS)
        except asyncio.CancelledError:
            await _close(connection)
            raise
        finally:
            connection.terminate()

    def _received(self, _connection: Connection, _process_id: int, _channel: str, kind: str) -> None:
        try:
            change = Change(kind)
        except ValueError:
            return  # of newer code, which may share the database while agents are replaced one by one
        self._subscribers.report(change)


async def _close(connection: Connection) -> None:
    try:
        await connection.close(timeout=_ANSWER_SECONDS)
    except _LOST:
        pass
