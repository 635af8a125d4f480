"""An HTTP connection that cannot be held open for nothing: requests must begin, and their headers arrive, in time."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState


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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._max_connections:
            transport.abort()
        else:
            self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_watching()
        super().connection_lost(exc)

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
