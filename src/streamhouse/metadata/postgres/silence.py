"""Finds connections that died without a word: we wait for PostgreSQL, and it waits for us.

A statement may take its time, on a busy server more than one would think, so how long it takes says little. Instead the
server is asked, over another connection, what it does for us."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from asyncpg import exceptions as pg

from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.tasks import TaskGroup

Connection: TypeAlias = Any
_Doing: TypeAlias = Any
"""A backend's state and since when it has it; None if there is no such backend."""

_SUSPICIOUS_SECONDS = 2.0
_AGAIN_MS = 1_000
_ANSWER_SECONDS = 3.0
_NOT_ASKED: Final = object()
_WHAT_THEY_DO = "SELECT pid, state, state_change FROM pg_stat_activity WHERE pid = ANY($1::int[])"


class SilenceWatch:
    def __init__(self, connect: Callable[[], Awaitable[Connection]], found: Callable[[], Awaitable[None]]) -> None:
        """`found` is called when a connection was dead: others may be."""
        self._connect = connect
        self._found = found
        self._clock = SystemClock()
        self._tasks = TaskGroup("postgres-silence")
        self._waiting: dict[Connection, _Doing] = {}
        """Those that have waited for long, and what the server did for them when it was last asked."""

    @contextmanager
    def over(self, connection: Connection) -> Iterator[None]:
        """End the connection if it turns out to be dead while this lasts; whoever waits for it hears that it broke."""
        timer = asyncio.get_running_loop().call_later(_SUSPICIOUS_SECONDS, self._suspect, connection)
        try:
            yield
        finally:
            timer.cancel()
            self._waiting.pop(connection, None)

    async def close(self) -> None:
        await self._tasks.cancel()

    def _suspect(self, connection: Connection) -> None:
        self._waiting[connection] = _NOT_ASKED
        if not len(self._tasks):
            self._tasks.start(self._ask(), "ask")

    async def _ask(self) -> None:
        """As long as somebody waits for long. A server that cannot be reached at all is no matter of connections."""
        while self._waiting:
            with suppress(OSError, EOFError, pg.PostgresError, pg.InterfaceError, pg.InternalClientError):
                asking = await self._connect()
                try:
                    while self._waiting:
                        await self._look(asking)
                        await self._clock.sleep_ms(_AGAIN_MS)
                finally:
                    asking.terminate()
            await self._clock.sleep_ms(_AGAIN_MS)

    async def _look(self, asking: Connection) -> None:
        pids = {connection: connection.get_server_pid() for connection in self._waiting}
        rows = await asking.fetch(_WHAT_THEY_DO, list(pids.values()), timeout=_ANSWER_SECONDS)
        doing = {row["pid"]: (row["state"], row["state_change"]) for row in rows}
        for connection, pid in pids.items():
            now = doing.get(pid)
            if now == self._waiting.get(connection, _NOT_ASKED) and (now is None or now[0] != "active"):
                # It has heard nothing of us for as long as we have heard nothing of it.
                self._waiting.pop(connection)
                with suppress(pg.InterfaceError):
                    connection.terminate()
                await self._found()
            elif connection in self._waiting:
                self._waiting[connection] = now
