"""Blocking HTTP calls to one of several nodes, repeated until one answers or time is up."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from streamhouse.model.errors import InvalidInput, StreamHouseError, Unavailable
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.pause import pause_ms
from streamhouse.runtime.retry import backoff_ms
from streamhouse.wire.http.error_statuses import RETRIABLE, error_of
from streamhouse.wire.http.planning import ErrorAnswer
from streamhouse.wire.http.rest.cluster import NodeHealth
from streamhouse.wire.http.rest.problems import Problem, error_of_problem

_log = logging.getLogger(__name__)

Answer = TypeVar("Answer")

_CONNECT_TIMEOUT_S = 5.0
_FIRST_ANSWER_S = 10.0
"""What all endpoints together have until one answers, where they take connections: longer than what is not there."""
_LEAST_TURN_S = 4.0
"""What each of them has of it, however many they are."""
_LIVE_PATH = "/health/live"
_TELL_AFTER_MS = 5_000
_FIRST_WAIT_MS = 50
_LONGEST_WAIT_MS = 2_000
_SHOWN_BODY = 200
_LONGEST_LINE_BYTES = 2**20


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

    def __init__(
        self,
        endpoints: str,
        *,
        timeout_seconds: float,
        retry_seconds: float | None = None,
        reach_seconds: float | None = None,
    ) -> None:
        """`retry_seconds`: for how long a call that fails is begun again, 0 for never; default: the time-out of one.
        `reach_seconds`: the same while no endpoint has ever answered, if that is less. An address that is wrong is
        found soon then, and a node that is started anew still waited for. Endpoints that take connections and say
        nothing have ten seconds together, unless one is busy and says that it is alive; without `reach_seconds` too,
        if there are several. Each is asked before a call fails."""
        self._endpoints = [_parse(part.strip()) for part in endpoints.split(",")]
        self._current = 0
        self._timeout_s = timeout_seconds
        self._retry_s = timeout_seconds if retry_seconds is None else retry_seconds
        self._reach_s = 0.0 if reach_seconds is None else min(reach_seconds, self._retry_s)
        self._is_reached = reach_seconds is None
        self._speaking: set[int] = set()
        """Numbers of endpoints that have answered, and not been silent since."""
        self._clock = SystemClock()
        self._connection: HTTPConnection | None = None

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The answer's body; what a node refuses for good is raised as what it is there."""
        begun_ms = self._clock.monotonic_ms()
        is_told = False
        passed_over = 0
        for wait_ms in backoff_ms(_FIRST_WAIT_MS, _LONGEST_WAIT_MS):
            endpoint = self._endpoints[self._current]
            was_kept = self._connection is not None
            # Half of a turn is for what is asked, the other half for whether anybody is there.
            turn_s = self._turn_s(begun_ms, passed_over)
            limit_s = None if self._is_reached else turn_s / 2
            try:
                if limit_s is None:
                    self._hear(endpoint, turn_s)
                return self._try(endpoint, method, path, body, limit_s)
            except _Refused as refused:
                problem = refused.problem
            except (OSError, HTTPException) as broken:
                is_silent = self._connection is not None and isinstance(broken, TimeoutError)
                self.close()
                if was_kept and not isinstance(broken, TimeoutError):
                    continue  # the node had closed it, as it does with idle ones
                if limit_s is not None and is_silent and self._is_alive(endpoint, limit_s):
                    _log.warning("%s is there and busy; waiting for its answer", endpoint)
                    continue
                self._speaking.discard(self._current)
                problem = Unavailable(f"{endpoint} does not answer: {str(broken) or type(broken).__name__}")
            self._next()
            passed_over += 1
            if passed_over < len(self._endpoints):
                continue  # to one that was not asked yet
            waited_ms = self._clock.monotonic_ms() - begun_ms
            patience_ms = 1000 * (self._retry_s if self._is_reached else self._reach_s)
            if waited_ms + wait_ms >= patience_ms:
                raise Unavailable(problem.message, hint=problem.hint or "is it a StreamHouse node's HTTP port?")
            if waited_ms >= _TELL_AFTER_MS and not is_told:
                _log.warning("%s; asking again for another %d s", problem, (patience_ms - waited_ms) / 1000)
                is_told = True
            pause_ms(wait_ms)
        raise AssertionError("the waits are endless")

    def lines(self, method: str, path: str, body: bytes | None = None) -> Generator[bytes]:
        """The answer line by line as it comes, asked for once; the time-out is that of each line. Whoever stops reading
        closes this."""
        endpoint = self._endpoints[self._current]
        self.close()  # a kept connection may be one that the node has closed
        try:
            response = self._begin(endpoint, method, path, body)
            if response.status >= 300:
                content = response.read()
                raise _told_by_node(content) or _not_of_a_node(endpoint, response.status, content)
            while line := response.readline(_LONGEST_LINE_BYTES):
                yield line
        except (OSError, HTTPException) as broken:
            raise Unavailable(f"{endpoint} does not answer any more: {str(broken) or type(broken).__name__}") from None
        finally:
            self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _next(self) -> None:
        if len(self._endpoints) > 1:
            self.close()
            self._current = (self._current + 1) % len(self._endpoints)

    def _turn_s(self, begun_ms: int, passed_over: int) -> float:
        """Of an endpoint that has not answered: its share of the time that those not asked yet have."""
        whole_s = min(self._timeout_s, max(self._reach_s, _FIRST_ANSWER_S))
        left_s = whole_s - (self._clock.monotonic_ms() - begun_ms) / 1000
        not_asked = max(1, len(self._endpoints) - passed_over)
        return max(left_s / not_asked, min(_LEAST_TURN_S, whole_s))

    def _try(self, endpoint: _Endpoint, method: str, path: str, body: bytes | None, limit_s: float | None) -> bytes:
        status, content = self._exchange(endpoint, method, path, body, limit_s)
        told = None if status < 300 else _told_by_node(content)
        # Anybody can answer 503, such as a proxy before a node that is not there.
        self._is_reached = self._is_reached or status < 300 or told is not None
        if status < 300:
            return content
        problem = told or _not_of_a_node(endpoint, status, content)
        if status in RETRIABLE:
            raise _Refused(problem)
        raise problem

    def _hear(self, endpoint: _Endpoint, turn_s: float) -> None:
        """Where there are several, one is to say something, whatever it is, before it is given the whole time-out: then
        a silent one costs its turn, and what takes a node long is not asked twice."""
        if len(self._endpoints) > 1 and self._current not in self._speaking:
            self._exchange(endpoint, "GET", _LIVE_PATH, None, turn_s)

    def _is_alive(self, endpoint: _Endpoint, limit_s: float) -> bool:
        """A node that is busy, or waits for its database, says at once that it lives: it counts as reached then."""
        try:
            _, content = self._exchange(endpoint, "GET", _LIVE_PATH, None, limit_s)
            msgspec.json.decode(content, type=NodeHealth)
        except (OSError, HTTPException, msgspec.DecodeError, UnicodeDecodeError):
            self.close()
            return False
        self._is_reached = True
        return True

    def _exchange(
        self, endpoint: _Endpoint, method: str, path: str, body: bytes | None, limit_s: float | None
    ) -> tuple[int, bytes]:
        """Status and body; within the limit, if there is one, and else with the time-out for each piece that comes."""
        if limit_s is None:
            response = self._begin(endpoint, method, path, body)
            return response.status, response.read()
        with _hanging_up_after(limit_s, self._connected(endpoint, limit_s)):
            response = self._begin(endpoint, method, path, body)
            return response.status, response.read()

    def _begin(self, endpoint: _Endpoint, method: str, path: str, body: bytes | None) -> HTTPResponse:
        self._connected(endpoint, self._timeout_s).settimeout(self._timeout_s)
        assert self._connection is not None
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.request(method, endpoint.path + path, body, headers)
        response = self._connection.getresponse()
        self._speaking.add(self._current)
        return response

    def _connected(self, endpoint: _Endpoint, limit_s: float) -> socket.socket:
        if self._connection is None or self._connection.sock is None:
            kind = HTTPSConnection if endpoint.is_secure else HTTPConnection
            timeout_s = min(self._timeout_s, limit_s, _CONNECT_TIMEOUT_S)
            connection = kind(endpoint.host, endpoint.port, timeout=timeout_s)
            connection.connect()
            self._connection = connection
        assert self._connection.sock is not None
        connected: socket.socket = self._connection.sock
        return connected


@contextmanager
def _hanging_up_after(limit_s: float, connected: socket.socket) -> Iterator[None]:
    """TimeoutError when it takes longer than that. A socket's own time-out begins anew with each byte that comes."""
    is_late = threading.Event()

    def hang_up() -> None:
        is_late.set()
        with suppress(OSError):
            # Of TCP, not of TLS: that one's state is the other thread's.
            socket.socket.shutdown(connected, socket.SHUT_RDWR)

    timer = threading.Timer(limit_s, hang_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except (OSError, HTTPException):
        if not is_late.is_set():
            raise
    finally:
        timer.cancel()
    if is_late.is_set():
        raise TimeoutError("timed out")


def decode_answer(answer: bytes, kind: type[Answer]) -> Answer:
    try:
        return msgspec.json.decode(answer, type=kind)
    except msgspec.DecodeError as problem:
        raise StreamHouseError(
            f"the node's answer is not what was expected: {problem}", hint="is it a StreamHouse of this version?"
        ) from None


def _told_by_node(content: bytes) -> StreamHouseError | None:
    """Why it refuses; None if whoever answered is no node."""
    for read in (_planning_error, _rest_error):
        try:
            return read(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return None


def _not_of_a_node(endpoint: _Endpoint, status: int, content: bytes) -> StreamHouseError:
    shown = content[:_SHOWN_BODY].decode("utf-8", "replace").strip()
    return StreamHouseError(f"{endpoint} answered {status}: {shown}", hint="is it a StreamHouse node's HTTP port?")


def _planning_error(content: bytes) -> StreamHouseError:
    return error_of(msgspec.json.decode(content, type=ErrorAnswer))


def _rest_error(content: bytes) -> StreamHouseError:
    return error_of_problem(msgspec.json.decode(content, type=Problem))


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
