"""An HTTP port is answered under its own names only.

A page of another site may have its name made to mean an address of this network after it was loaded (DNS rebinding).
To a browser it then comes from where it asks, so that its `Origin` says nothing; but its name is still what `Host`
says."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from streamhouse.client.address import parse_bootstrap
from streamhouse.model.settings import Settings
from streamhouse.server.http.rest.problems import problem_response
from streamhouse.wire.http.rest.problems import FOREIGN_HOST, problem

_LOCAL = "localhost"
_ANY = "*"
_MISDIRECTED = 421
_MOST_KNOWN = 100


class OwnNames:
    """Wraps an application. What was accepted once is remembered, so that it costs no more than a look at a set."""

    def __init__(self, app: ASGIApp, names: Iterable[str], advertised: Callable[[], Iterable[str]]) -> None:
        """`advertised` are the names that clients are told of all nodes, as of now; `*.` before a name stands for all
        names below it."""
        self._app = app
        self._names = frozenset(name.lower() for name in names)
        self._endings = tuple(name.removeprefix("*") for name in (*self._names, f"*.{_LOCAL}") if name.startswith("*."))
        self._advertised = advertised
        self._known: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        if host in self._known or self._is_own(host):
            await self._app(scope, receive, send)
            return
        name = host[:100].decode("latin-1")
        refusal = problem_response(
            problem(
                FOREIGN_HOST,
                _MISDIRECTED,
                f"this port is called by an IP address, {_LOCAL}, or a name of its own, not by {name!r}",
                "say with --http-names by which names it may be called",
            )
        )
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal)
        else:
            await refusal(scope, receive, send)

    def _is_own(self, host: bytes) -> bool:
        name = _without_port(host.decode("latin-1").lower())
        is_own = (
            name in ("", _LOCAL)
            or name in self._names
            or name.endswith(self._endings)
            or _is_address(name)
            or name in {advertised.lower() for advertised in self._advertised()}
        )
        if is_own and len(self._known) < _MOST_KNOWN:
            self._known.add(host)
        return is_own


def guarded(app: ASGIApp, settings: Settings, advertised: Callable[[], Iterable[str]] = tuple) -> ASGIApp:
    """The application itself if it may be called by any name."""
    given = [name.strip() for name in settings.http_names.split(",") if name.strip()]
    if _ANY in given:
        return app
    own = [parse_bootstrap(told)[0].host for told in (settings.advertise, settings.advertise_http) if told]
    return OwnNames(app, [*given, *own, settings.host, socket.gethostname()], advertised)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).removeprefix("[").removesuffix("]")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
