"""One question to what may be a node's HTTP port, and in words what is there instead if it is none."""

from __future__ import annotations

import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from streamhouse.client.connection import silent_at
from streamhouse.model.errors import StreamHouseError, Unavailable
from streamhouse.wire.http.rest.cluster import NodeAnswer
from streamhouse.wire.http.rest.problems import CODES, Problem

HOW = "give --bootstrap with a node's Kafka or HTTP address; `streamhouse serve` starts one"
_PATH = "/api/v1/node"
_MOST_BYTES = 2**20
_SHOWN_BYTES = 200


def ask_node(url: str, timeout_ms: int) -> NodeAnswer:
    """What the node at a valid URL says of itself; blocking. Unavailable if none does: others may."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    kind = HTTPSConnection if parts.scheme.lower() == "https" else HTTPConnection
    with closing(kind(parts.hostname, parts.port, timeout=timeout_ms / 1000)) as connection:
        _connect(connection, url)
        try:
            connection.request("GET", parts.path.rstrip("/") + _PATH)
            response = connection.getresponse()
            status, content = response.status, response.read(_MOST_BYTES)
        except TimeoutError:
            raise silent_at(url, timeout_ms) from None
        except (OSError, HTTPException):
            raise Unavailable(f"what answers at {url} is no HTTP server", hint=HOW) from None
    return _understood(url, status, content)


def nothing_at(address: object, why: str) -> Unavailable:
    return Unavailable(f"nothing answers at {address}{f': {why}' if why else ''}", hint=HOW)


def _connect(connection: HTTPConnection, url: str) -> None:
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as problem:
        raise Unavailable(
            f"{url} shows a certificate that this machine does not trust: {problem.verify_message}", hint=HOW
        ) from None
    except ssl.SSLError:
        raise Unavailable(f"what answers at {url} does not speak TLS", hint="write http://") from None
    except (OSError, UnicodeError) as problem:
        raise nothing_at(url, getattr(problem, "strerror", None) or str(problem)) from None


def _understood(url: str, status: int, content: bytes) -> NodeAnswer:
    if status >= 300:
        raise _refusal(url, status, content)
    try:
        return msgspec.json.decode(content, type=NodeAnswer)
    except msgspec.DecodeError as problem:
        raise _no_node(url, str(problem)) from None


def _refusal(url: str, status: int, content: bytes) -> StreamHouseError:
    """A node's own words as they are: it may be called by another name only, or be about to stop."""
    try:
        told = msgspec.json.decode(content, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        told = None
    if told is not None and told.code in CODES:
        return Unavailable(f"the node at {url}: {told.detail}", hint=told.hint)
    shown = content[:_SHOWN_BYTES].decode("utf-8", "replace").strip()
    return _no_node(url, f"it answered {status}: {shown}")


def _no_node(url: str, why: str) -> Unavailable:
    return Unavailable(f"what answers at {url} is an HTTP server and no StreamHouse node: {why}", hint=HOW)
