"""A port for the HTTP listener: bound before the node does anything else, so that a taken one is noticed first."""

from __future__ import annotations

import socket
from typing import NamedTuple

from streamhouse.client.address import Address, parse_advertised
from streamhouse.model.errors import StorageUnavailable
from streamhouse.model.settings import Settings
from streamhouse.server.tcp import bind

_ANY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}


class HttpPort(NamedTuple):
    """Nobody can connect to it yet."""

    socket: socket.socket
    address: str
    """Where it listens."""


def bind_http_port(settings: Settings) -> HttpPort:
    try:
        bound = bind(settings.host, settings.http_port)
    except OSError as problem:
        raise cannot_listen(settings, problem) from None
    host, port = bound.getsockname()[:2]
    return HttpPort(bound, str(Address(_ANY_ADDRESS.get(host, host), port)))


def advertised_http(settings: Settings, host: str, port: int) -> str:
    """Where it is said to be: on the host by which clients know the node, unless a setting says otherwise."""
    if not settings.advertise_http:
        return str(Address(host, port))
    return str(parse_advertised(settings.advertise_http, port))


def cannot_listen(settings: Settings, problem: OSError) -> StorageUnavailable:
    return StorageUnavailable(
        f"cannot listen on {settings.host}:{settings.http_port}: {problem.strerror}",
        hint="stop what uses the port, or choose another with --http-port (0 picks a free one)",
    )
