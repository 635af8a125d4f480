"""The HTTP port: uvicorn on the node's own event loop, and drained with the node.

It speaks plain text and asks nobody who they are, so it belongs on a network that only the cluster and its Spark
applications reach; by default it is on 127.0.0.1. Importing this module imports uvicorn and starlette, which takes a
tenth of a second: only nodes with an HTTP port do."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

from streamhouse.model.settings import Settings
from streamhouse.server.http.connection import BoundedConnection, BoundedSocket
from streamhouse.server.http.errors import router_refusal
from streamhouse.server.http.own_names import guarded
from streamhouse.server.http.port import HttpPort, cannot_listen
from streamhouse.server.tcp import listen

_DRAIN_S = 5.0
_KEEP_ALIVE_S = 75
_LARGEST_HEADERS_BYTES = 64 * 1024
_LARGEST_SOCKET_MESSAGE_BYTES = 64 * 1024
"""Of what clients send, and nobody looks at."""


class HttpListener:
    def __init__(
        self,
        settings: Settings,
        routes: Sequence[BaseRoute],
        advertised: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """`advertised`: the names by which clients are told to call the nodes."""
        self._settings = settings
        # Their levels are also looked at without a record being made.
        logging.getLogger("uvicorn").setLevel(logging.WARNING)
        self._server = uvicorn.Server(
            uvicorn.Config(
                guarded(
                    Starlette(routes=list(routes), exception_handlers={HTTPException: router_refusal}),
                    settings,
                    advertised,
                ),
                http=partial(  # type: ignore[arg-type]
                    BoundedConnection,
                    max_connections=settings.max_connections,
                    request_timeout_s=settings.request_timeout / 1000,
                ),
                ws=partial(BoundedSocket, read_timeout_s=settings.request_timeout / 1000),  # type: ignore[arg-type]
                ws_max_size=_LARGEST_SOCKET_MESSAGE_BYTES,
                ws_per_message_deflate=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                # What is said to be JSON or bytes is not for a browser to guess about.
                headers=[("X-Content-Type-Options", "nosniff")],
                date_header=False,
                timeout_keep_alive=_KEEP_ALIVE_S,
                h11_max_incomplete_event_size=_LARGEST_HEADERS_BYTES,
            )
        )
        self._is_open = False

    async def start(self, port: HttpPort) -> None:
        """Clients may connect the moment this is called. uvicorn's own `serve` would take the process's signals and
        wake it ten times a second; what it does besides is done here."""
        server = self._server
        server.config.load()
        server.server_state.default_headers = list(server.config.encoded_headers)
        server.lifespan = server.config.lifespan_class(server.config)
        try:
            listen(port.socket)
            await server.startup(sockets=[port.socket])
        except OSError as problem:  # another process was bound to it as well, and began to listen first
            raise cannot_listen(self._settings, problem) from None
        self._is_open = True

    async def drain(self) -> None:
        """Accept nothing new, answer what was received, then hang up."""
        self._stop_accepting()
        state = self._server.server_state
        for connection in list(state.connections):
            connection.shutdown()
        if state.tasks:
            await asyncio.wait(state.tasks, timeout=_DRAIN_S)
        await self.close()

    async def close(self) -> None:
        """At once."""
        self._stop_accepting()
        state = self._server.server_state
        for connection in list(state.connections):
            connection.transport.abort()
        tasks = list(state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _stop_accepting(self) -> None:
        if self._is_open:
            self._is_open = False
            for server in self._server.servers:
                server.close()
