"""The Kafka port: accepts connections, and drains them when the node stops."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from streamhouse.broker.broker import Broker
from streamhouse.broker.measures import DoorMeasures
from streamhouse.client.address import Address
from streamhouse.log.budget import ByteBudget
from streamhouse.model.errors import InvalidConfig, StorageUnavailable
from streamhouse.model.settings import Settings
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.kafka.context import Endpoint
from streamhouse.server.kafka.routing import Router
from streamhouse.server.kafka.session import KafkaSession
from streamhouse.server.tcp import Connection, Listener, bind

_DRAIN_POLL_MS = 5
_DRAIN_LIMIT_MS = 5_000
_LARGEST_REPLY_BYTES = 16 * 1024 * 1024
_SMALLER_REPLY_BYTES = 64 * 1024
_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class KafkaPort(NamedTuple):
    """A bound port that nobody can connect to yet, so that others can be told of it before it is open."""

    socket: socket.socket
    address: str
    """Where it listens."""
    endpoint: Endpoint
    """What clients are told."""


def bind_kafka_port(settings: Settings) -> KafkaPort:
    try:
        bound = bind(settings.host, settings.kafka_port)
    except OSError as problem:
        raise _cannot_listen(settings, problem) from None
    host, port = bound.getsockname()[:2]
    host = _ANY_ADDRESS.get(host, host)
    return KafkaPort(bound, str(Address(host, port)), _advertised(settings.advertise, host, port))


def _cannot_listen(settings: Settings, problem: OSError) -> StorageUnavailable:
    return StorageUnavailable(
        f"cannot listen on {settings.host}:{settings.kafka_port}: {problem.strerror}",
        hint="stop what uses the port, or choose another with --kafka-port (0 picks a free one)",
    )


class KafkaListener:
    def __init__(self, broker: Broker, measures: DoorMeasures) -> None:
        self.measures = measures
        self._broker = broker
        self._tasks = TaskGroup("kafka")
        # One thread, so that the loop has at least every second turn.
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="kafka-read")
        self._sessions: dict[Connection, KafkaSession] = {}
        self._router: Router
        settings = broker.settings
        self._listener = Listener(
            name="kafka",
            make_handler=self._session,
            max_frame_bytes=settings.max_request_bytes,
            receive_budget=ByteBudget(settings.receive_bytes),
            max_connections=settings.max_connections,
            idle_timeout_ms=settings.idle_timeout,
            request_timeout_ms=settings.request_timeout,
        )
        self.endpoint: Endpoint
        self.address: str

    @property
    def traffic(self) -> Listener:
        """Its connections, and what of their requests and replies is in memory."""
        return self._listener

    @property
    def requests(self) -> Mapping[str, int]:
        """How often each API was asked, by name, but for produces and fetches."""
        return self._router.requests

    async def start(self, port: KafkaPort) -> None:
        """Clients may connect the moment this is called."""
        self.address, self.endpoint = port.address, port.endpoint
        self._router = Router(self._broker, port.endpoint, self._largest_reply_bytes, self.measures, self._reading)
        try:
            await self._listener.start(port.socket)
        except OSError as problem:  # another process was bound to it as well, and began to listen first
            raise _cannot_listen(self._broker.settings, problem) from None

    async def drain(self) -> None:
        """Accept and read nothing new, answer what was received, then hang up."""
        self._listener.stop_accepting()
        for connection in list(self._listener.connections):
            connection.pause()
        deadline_ms = self._broker.clock.monotonic_ms() + _DRAIN_LIMIT_MS
        while not all(session.is_idle for session in self._sessions.values()):
            if self._broker.clock.monotonic_ms() > deadline_ms:
                break  # a long poll, which the client will repeat elsewhere
            await self._broker.clock.sleep_ms(_DRAIN_POLL_MS)
        await self._listener.close()
        while self._listener.connections and self._broker.clock.monotonic_ms() < deadline_ms:
            await self._broker.clock.sleep_ms(_DRAIN_POLL_MS)
        await self.close()

    async def close(self) -> None:
        """At once."""
        await self._listener.close()
        self._listener.abort()
        await self._tasks.cancel()
        self._reading.shutdown(wait=False)

    def _largest_reply_bytes(self) -> int:
        """Replies wait in memory until clients take them; when much waits, they get smaller."""
        waiting = self._listener.unsent_bytes
        return _LARGEST_REPLY_BYTES if waiting < self._broker.settings.cache_bytes else _SMALLER_REPLY_BYTES

    def _session(self, connection: Connection) -> KafkaSession:
        session = KafkaSession(connection, self._router, self._tasks, self._sessions.pop)
        self._sessions[connection] = session
        return session


def _advertised(advertise: str, host: str, port: int) -> Endpoint:
    if not advertise:
        return Endpoint(host, port)
    name, separator, given_port = advertise.rpartition(":")
    if not separator:
        return Endpoint(advertise, port)
    if not name or not given_port.isdigit() or not 0 < int(given_port) < 65536:
        raise InvalidConfig(f"{advertise!r} is not an address to advertise", hint="write HOST or HOST:PORT")
    return Endpoint(name, int(given_port))
