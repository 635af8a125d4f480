"""The gRPC port: one server for all gRPC services of a node, with limits on messages, calls and connections.

It speaks plain text and asks nobody who they are, so it belongs on a network that only the cluster's nodes reach; by
default it is on 127.0.0.1. Importing this module imports grpc, which takes a tenth of a second: only nodes with a gRPC
port do."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from streamhouse.client.address import Address
from streamhouse.model.errors import Unavailable
from streamhouse.model.settings import Settings
from streamhouse.server.grpc.messages_in_time import MessagesInTime

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Of a message, unless batches may be larger by the node's own settings."""
ENVELOPE_BYTES = 64 * 1024
"""What a message may have around the records: a batch that Kafka's listener takes is then never too large here."""
MAX_CALLS = 1_000
"""Calls under way at once, long polls included; those beyond are refused, and callers try again."""
MAX_CALLS_OF_CONNECTION = 100
"""Where other nodes do not call: those have a connection for all that they forward."""
_IDENTITY_ALONE = 1
_KEEPALIVE_TIME_MS = 30_000
_KEEPALIVE_TIMEOUT_MS = 10_000
_CLIENT_PING_INTERVAL_MS = 5_000


def message_limit_bytes(settings: Settings) -> int:
    """The largest message that is taken: a batch of any topic that does not go beyond the node's settings has room."""
    largest_bytes = max(MAX_MESSAGE_BYTES, settings.max_message_bytes)
    return min(largest_bytes, settings.max_request_bytes) + ENVELOPE_BYTES


def message_room(settings: Settings) -> int:
    """How many of the largest messages the node may be receiving."""
    return max(1, settings.receive_bytes // message_limit_bytes(settings))


class GrpcListener:
    def __init__(
        self,
        settings: Settings,
        services: Sequence[grpc.GenericRpcHandler],
        *,
        max_calls: int = MAX_CALLS,
        max_calls_of_connection: int = MAX_CALLS_OF_CONNECTION,
    ) -> None:
        self._settings = settings
        self._services = tuple(services)
        self._max_calls = max_calls
        self._max_calls_of_connection = max_calls_of_connection
        self._server: grpc.aio.Server | None = None

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen; port 0 picks a free one. Returns where."""
        settings = self._settings
        server = grpc.aio.server(
            maximum_concurrent_rpcs=self._max_calls,
            interceptors=(
                MessagesInTime(
                    first_ms=settings.request_timeout, next_ms=settings.idle_timeout, room=message_room(settings)
                ),
            ),
            options=(
                # Two nodes on one port must be an error, and not each get half of the connections.
                ("grpc.so_reuseport", 0),
                ("grpc.max_receive_message_length", message_limit_bytes(settings)),
                # A few bytes that become many would be measured only when they are that many.
                ("grpc.compression_enabled_algorithms_bitset", _IDENTITY_ALONE),
                ("grpc.max_concurrent_streams", self._max_calls_of_connection),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_allowed_incoming_connections", settings.max_connections),
                ("grpc.max_connection_idle_ms", settings.idle_timeout),
                ("grpc.server_handshake_timeout_ms", settings.request_timeout),
                ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
                ("grpc.http2.min_ping_interval_without_data_ms", _CLIENT_PING_INTERVAL_MS),
            ),
        )
        server.add_generic_rpc_handlers(self._services)
        try:
            bound_port = server.add_insecure_port(str(Address(host, port)))
        except RuntimeError:
            raise Unavailable(
                f"cannot listen on {Address(host, port)}",
                hint="stop what uses the port, or choose another with --grpc-port (0 picks a free one)",
            ) from None
        await server.start()
        self._server = server
        return host, bound_port

    async def drain(self, grace_ms: int) -> None:
        """Take no new calls, let those under way end within the grace, hang up."""
        if self._server is not None:
            await self._server.stop(grace_ms / 1000)

    async def close(self) -> None:
        """At once."""
        if self._server is not None:
            await self._server.stop(None)
