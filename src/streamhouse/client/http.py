"""Blocking HTTP calls to one of several nodes, repeated until one answers or time is up."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import msgspec

from streamhouse.model.errors import InvalidInput, StreamHouseError, Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.pause import pause_ms
from streamhouse.runtime.retry import backoff_ms
from streamhouse.wire.http.error_statuses import RETRIABLE, error_of
from streamhouse.wire.http.planning import ErrorAnswer

_CONNECT_TIMEOUT_S = 5.0
_FIRST_WAIT_MS = 50
_LONGEST_WAIT_MS = 2_000
_SHOWN_BODY = 200


@dataclass(frozen=True, slots=True)
class _Endpoint:
    host: str
    port: int
    is_secure: bool
    path: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class _Refused(Exception):
    """Not now, says the node: the same call may succeed later, or elsewhere."""

    def __init__(self, problem: StreamHouseError) -> None:
        self.problem = problem


class HttpEndpoints:
    """One connection, which is kept while it works; the next endpoint is tried when it does not. Every call must be
    safe to repeat: whether one that was not answered was carried out is not known."""

    def __init__(self, endpoints: str, *, timeout_seconds: float) -> None:
        self._endpoints = [_parse(part.strip()) for part in endpoints.split(",")]
        self._current = 0
        self._timeout_s = timeout_seconds
        self._clock = SystemClock()
        self._connection: HTTPConnection | None = None

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's body; what a node refuses for good is raised as what it is there."""
        deadline_ms = self._clock.monotonic_ms() + 1000 * self._timeout_s
        for wait_ms in backoff_ms(_FIRST_WAIT_MS, _LONGEST_WAIT_MS):
            endpoint = self._endpoints[self._current]
            was_kept = self._connection is not None
            try:
                return self._try(endpoint, method, path, body)
            except _Refused as refused:
                problem = refused.problem
            except (OSError, HTTPException) as broken:
                self.close()
                if was_kept and not isinstance(broken, TimeoutError):
                    continue  # the node had closed it, as it does with idle ones
                problem = Unavailable(f"{endpoint} does not answer: {str(broken) or type(broken).__name__}")
            self._next()
            if self._clock.monotonic_ms() + wait_ms >= deadline_ms:
                raise Unavailable(problem.message, hint=problem.hint or "is it a StreamHouse node's HTTP port?")
            pause_ms(wait_ms)
        raise AssertionError("the waits are endless")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _next(self) -> None:
        if len(self._endpoints) > 1:
            self.close()
            self._current = (self._current + 1) % len(self._endpoints)

    def _try(self, endpoint: _Endpoint, method: str, path: str, body: bytes | None) -> bytes:
        connection = self._connected(endpoint)
        headers = {} if body is None else {"Content-Type": "application/json"}
        connection.request(method, endpoint.path + path, body, headers)
        response = connection.getresponse()
        content = response.read()
        if response.status < 300:
            return content
        problem = _problem(endpoint, response.status, content)
        if response.status in RETRIABLE:
            raise _Refused(problem)
        raise problem

    def _connected(self, endpoint: _Endpoint) -> HTTPConnection:
        if self._connection is None:
            kind = HTTPSConnection if endpoint.is_secure else HTTPConnection
            connection = kind(endpoint.host, endpoint.port, timeout=min(self._timeout_s, _CONNECT_TIMEOUT_S))
            connection.connect()
            assert connection.sock is not None
            connection.sock.settimeout(self._timeout_s)
            self._connection = connection
        return self._connection


def _problem(endpoint: _Endpoint, status: int, content: bytes) -> StreamHouseError:
    try:
        return error_of(msgspec.json.decode(content, type=ErrorAnswer))
    except (msgspec.DecodeError, UnicodeDecodeError):
        shown = content[:_SHOWN_BODY].decode("utf-8", "replace").strip()
        return StreamHouseError(f"{endpoint} answered {status}: {shown}", hint="is it a StreamHouse node's HTTP port?")


def _parse(text: str) -> _Endpoint:
    url = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise ValueError(text)
        is_secure = parts.scheme == "https"
        return _Endpoint(parts.hostname, parts.port or (443 if is_secure else 80), is_secure, parts.path.rstrip("/"))
    except ValueError:
        raise InvalidInput(f"{text[:100]!r} is not an endpoint", hint="write http://HOST:PORT") from None
