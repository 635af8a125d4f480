"""An HTTP connection that cannot be held open for nothing: requests must begin, and their headers arrive, in time; and
answers, as well as a WebSocket's messages, must be read."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn._types import ASGISendEvent
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

_OF_KAFKA = b"\0"
"""The size of a request of Kafka's begins so, and nothing of HTTP's does."""
_REFUSAL_TEXT = b"this is an HTTP port; /api/v1/node says where Kafka's is\n"
_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_REFUSAL_TEXT), _REFUSAL_TEXT)
)


class ReaderPatience:
    """Hangs up on who reads nothing of what waits for it; who reads slowly may."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop, patience_s: float) -> None:
        self._transport = transport
        self._loop = loop
        self._patience_s = patience_s
        self._timer: asyncio.TimerHandle | None = None
        self._unread_bytes = 0

    def start(self) -> None:
        """More waits than should."""
        self.stop()
        self._unread_bytes = self._transport.get_write_buffer_size()
        self._timer = self._loop.call_later(self._patience_s, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._transport.get_write_buffer_size() < self._unread_bytes:
            self.start()
        else:
            self._transport.abort()


class BoundedSocket(WebSocketsSansIOProtocol):
    """A WebSocket, under the same limits: it takes over a connection that has sent its request, and counts as one."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        read_timeout_s: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._read_timeout_s = read_timeout_s
        self._reader: ReaderPatience

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._reader = ReaderPatience(self.transport, self.loop, self._read_timeout_s)

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.stop()
        super().connection_lost(exc)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            # uvicorn takes a handshake that was refused with an answer for one that was forgotten, and logs an error.
            self.handshake_complete = True

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader.stop()


class BoundedConnection(H11Protocol):
    """uvicorn closes connections that are silent between requests; this also closes those that never send one, or one
    without end. Bodies are waited for in `calls`, but for the rest of one that was answered before its end."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        max_connections: int,
        request_timeout_s: float,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._max_connections = max_connections
        self._request_timeout_s = request_timeout_s
        self._patience: asyncio.TimerHandle | None = None
        self._reader: ReaderPatience

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._reader = ReaderPatience(transport, self.loop, self._request_timeout_s)
        if len(self.connections) > self._max_connections:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        if data.startswith(_OF_KAFKA) and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]:
            self._refuse_kafka()
            return
        super().data_received(data)
        self._watch()

    def _refuse_kafka(self) -> None:
        """Who looks for a node's Kafka port by its HTTP port learns it so, and nobody need read of it in a log."""
        self._stop_watching()
        self.transport.write(_REFUSAL)
        self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        self._reader.stop()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._reader.stop()

    def _watch(self) -> None:
        """The time runs from the first byte on, and more bytes do not give more of it."""
        theirs, ours = self.conn.their_state, self.conn.our_state
        is_owed = theirs is h11.IDLE or (theirs is h11.SEND_BODY and ours is h11.DONE)
        if not is_owed or self.transport.is_closing():
            self._stop_watching()
        elif self._patience is None:
            self._patience = self.loop.call_later(self._request_timeout_s, self.transport.abort)

    def _stop_watching(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
