"""The Flume port: accepts connections, and drains them when the node stops."""

from __future__ import annotations

import socket
from typing import NamedTuple

from streamhouse.client.cluster import Cluster
from streamhouse.log.budget import ByteBudget
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.model.errors import StorageUnavailable
from streamhouse.model.group_config import SESSION_TIMEOUT
from streamhouse.model.settings import Settings
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.doors import DoorContext
from streamhouse.server.flume.groups import Memberships
from streamhouse.server.flume.session import FlumeSession
from streamhouse.server.tcp import Connection, Listener, bind

_DRAIN_POLL_MS = 5
_DRAIN_LIMIT_MS = 5_000
_LEAVE_LIMIT_MS = 1_000
_LARGEST_REPLY_BYTES = 16 * 1024 * 1024
_SMALLER_REPLY_BYTES = 64 * 1024
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class FlumePort(NamedTuple):
    """A bound port that nobody can connect to yet."""

    socket: socket.socket
    address: str


def bind_flume_port(settings: Settings) -> FlumePort:
    try:
        bound = bind(settings.host, settings.flume_port)
    except OSError as problem:
        raise _cannot_listen(settings, problem) from None
    host, port = bound.getsockname()[:2]
    host = _ANY_ADDRESS.get(host, host)
    return FlumePort(bound, f"[{host}]:{port}" if ":" in host else f"{host}:{port}")


def _cannot_listen(settings: Settings, problem: OSError) -> StorageUnavailable:
    return StorageUnavailable(
        f"cannot listen on {settings.host}:{settings.flume_port}: {problem.strerror}",
        hint="stop what uses the port, or choose another with --flume-port (0 picks a free one)",
    )


class FlumeListener:
    def __init__(self, context: DoorContext) -> None:
        self._context = context
        self._clock = context.broker.clock
        self._tasks = TaskGroup("flume")
        self._cluster = Cluster([context.kafka])
        self._sessions: dict[Connection, FlumeSession] = {}
        settings = context.broker.settings
        self._listener = Listener(
            name="flume",
            make_handler=self._session,
            max_frame_bytes=settings.max_request_bytes,
            receive_budget=ByteBudget(settings.receive_bytes),
            max_connections=settings.max_connections,
            idle_timeout_ms=settings.idle_timeout,
            request_timeout_ms=settings.request_timeout,
        )
        self.address: str

    @property
    def traffic(self) -> Listener:
        """Its connections, and what of their requests and replies is in memory."""
        return self._listener

    async def start(self, port: FlumePort) -> None:
        """Clients may connect the moment this is called."""
        self.address = port.address
        try:
            await self._listener.start(port.socket)
        except OSError as problem:  # another process was bound to it as well, and began to listen first
            raise _cannot_listen(self._context.broker.settings, problem) from None

    async def drain(self) -> None:
        """Accept and read nothing new, answer what was received, hang up, and let members leave their groups."""
        self._listener.stop_accepting()
        for connection in list(self._listener.connections):
            connection.pause()
        deadline_ms = self._clock.monotonic_ms() + _DRAIN_LIMIT_MS
        while not all(session.is_idle for session in self._sessions.values()):
            if self._clock.monotonic_ms() > deadline_ms:
                break
            await self._clock.sleep_ms(_DRAIN_POLL_MS)
        await self._listener.close()
        while self._listener.connections and self._clock.monotonic_ms() < deadline_ms:
            await self._clock.sleep_ms(_DRAIN_POLL_MS)
        # If no other node takes the groups over, nobody is there to leave.
        deadline_ms = self._clock.monotonic_ms() + _LEAVE_LIMIT_MS
        while self._tasks and self._clock.monotonic_ms() < deadline_ms:
            await self._clock.sleep_ms(_DRAIN_POLL_MS)
        await self.close()

    async def close(self) -> None:
        """At once."""
        await self._listener.close()
        self._listener.abort()
        await self._tasks.cancel()
        await self._cluster.close()

    def _largest_reply_bytes(self) -> int:
        """Replies wait in memory until clients take them; when much waits, they get smaller."""
        waiting = self._listener.unsent_bytes
        return _LARGEST_REPLY_BYTES if waiting < self._context.broker.settings.cache_bytes else _SMALLER_REPLY_BYTES

    def _longest_session_ms(self, group_id: str) -> int:
        configs, group = self._context.broker.configs, Configured(ConfigKind.GROUP, group_id)
        return int(configs.own(group).get(SESSION_TIMEOUT) or configs.inherited(group, SESSION_TIMEOUT))

    def _session(self, connection: Connection) -> FlumeSession:
        memberships = Memberships(
            self._cluster,
            clock=self._clock,
            tasks=self._tasks,
            longest_session_ms=self._longest_session_ms,
        )
        session = FlumeSession(
            connection, self._context, memberships, self._largest_reply_bytes, self._tasks, self._sessions.pop
        )
        self._sessions[connection] = session
        return session
