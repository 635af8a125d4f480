"""A port that only this machine reaches, answered under this machine's names only.

A page of another site may have its name made to mean 127.0.0.1 after it was loaded (DNS rebinding). To a browser it
then comes from where it asks, so that its `Origin` says nothing; but its name is still what `Host` says. A port that is
open to a network is called by whatever name that network has for it, and is not for this to guard."""

from __future__ import annotations

from ipaddress import ip_address

from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket

from streamhouse.client.address import parse_bootstrap
from streamhouse.model.settings import Settings
from streamhouse.server.http.rest.problems import problem_response
from streamhouse.wire.http.rest.problems import FOREIGN_HOST, problem

_LOCAL = "localhost"
_MOST_KNOWN = 100


class OwnNames:
    """Wraps an application. What was accepted once is remembered, so that it costs no more than a look at a set."""

    def __init__(self, app: ASGIApp, advertised: str) -> None:
        self._app = app
        self._advertised = advertised.lower()
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
                403,
                f"this port is called by an address of this machine or by {_LOCAL}, not by {name!r}",
                "say with --advertise by which name it may be called, or bind it to the network with --host",
            )
        )
        if scope["type"] == "websocket":
            await WebSocket(scope, receive, send).send_denial_response(refusal)
        else:
            await refusal(scope, receive, send)

    def _is_own(self, host: bytes) -> bool:
        name = _without_port(host.decode("latin-1").lower())
        if not (name in ("", _LOCAL, self._advertised) or name.endswith(f".{_LOCAL}") or _is_address(name)):
            return False
        if len(self._known) < _MOST_KNOWN:
            self._known.add(host)
        return True


def guarded(app: ASGIApp, settings: Settings) -> ASGIApp:
    """The application itself where everybody may call it by any name."""
    if settings.host != _LOCAL and not (_is_address(settings.host) and ip_address(settings.host).is_loopback):
        return app
    advertised = parse_bootstrap(settings.advertise)[0].host if settings.advertise else ""
    return OwnNames(app, advertised)


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).removeprefix("[").removesuffix("]")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
