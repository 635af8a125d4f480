"""One connection to one broker: requests are pipelined, answers come in order, nothing waits without a deadline."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import TypeVar

from streamhouse.client.address import Address
from streamhouse.client.errors import raise_for
from streamhouse.client.messages import Messages
from streamhouse.model.errors import MalformedRequest, StreamHouseError, Unavailable, Unsupported
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.wire.kafka import frame
from streamhouse.wire.kafka.messages import api_versions
from streamhouse.wire.kafka.registry import APIS, Api

Request = TypeVar("Request")
Response = TypeVar("Response")

DEFAULT_TIMEOUT_MS = 30_000
_SIZE_BYTES = 4
_HTTP = b"HTTP"
"""What an HTTP server answers to a request of Kafka's begins so; as a size it would be more than a gigabyte."""
_MIN_RESPONSE_BYTES = 4
# Kept small: what the kernel cannot take yet makes the caller wait instead of piling up here.
_WRITE_HIGH_WATER_BYTES = 1024 * 1024


class NotABroker(Unavailable):
    """Somebody answers at the address, and not as a Kafka broker does; `speaks_http`: but as an HTTP server does."""

    def __init__(self, message: str, *, hint: str | None = None, speaks_http: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.speaks_http = speaks_http


class Silent(Unavailable):
    """Connections are accepted at the address, and nothing is answered on them."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="is it paused or overloaded?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    client_id: str = "streamhouse"
    connect_timeout_ms: int = 10_000
    max_response_bytes: int = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Pending:
    """A request on its way: who waits for its answer, and how that answer is read."""

    correlation_id: int
    answer: asyncio.Future[object]
    decode: Callable[[memoryview], tuple[int, object]]


class Connection:
    """Made by `open`; when anything goes wrong on it, it closes, and every caller that waits gets the reason."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, options: ConnectionOptions
    ) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._options = options
        self._pending: deque[_Pending] = deque()
        self._next_correlation_id = 0
        self._problem: StreamHouseError | None = None
        # Until the broker has said what it speaks, the one request whose version 0 every broker answers.
        self._versions = MappingProxyType({api_versions.API_KEY: (0, 0)})
        self._tasks = TaskGroup(f"client:{address}")

    @classmethod
    async def open(cls, address: Address, options: ConnectionOptions | None = None) -> Connection:
        """Connects and learns which versions the broker speaks."""
        options = options or ConnectionOptions()
        reader, writer = await dial(address, options.connect_timeout_ms)
        writer.transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER_BYTES)
        connection = cls(address, reader, writer, options)
        connection._tasks.start(connection._read_answers(), "answers")
        try:
            await connection._learn_versions()
        except BaseException as problem:
            await connection.close()
            if isinstance(problem, Silent):
                raise silent_at(address, options.connect_timeout_ms) from None
            if isinstance(problem, Unavailable) and not isinstance(problem, NotABroker):
                raise NotABroker(problem.message, hint=problem.hint) from None
            raise
        return connection

    @property
    def is_open(self) -> bool:
        return self._problem is None

    async def call(
        self,
        messages: Messages[Request, Response],
        request: Request,
        *,
        max_version: int | None = None,
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        client_id: str | None = None,
    ) -> Response:
        """Sends a request in the newest version that both sides speak and waits for its answer.

        `client_id` is for callers that share a connection and are told apart by the broker."""
        version = self._choose_version(APIS[messages.API_KEY], max_version)
        answer = self._enqueue(messages, request, version, client_id)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._drain()
                return await answer
        except TimeoutError:
            # Answers come in order: behind one that never comes, none will.
            problem = Silent(f"{self.address} did not answer within {timeout_ms} ms")
            self._fail(problem)
            raise problem from None

    async def send_unanswered(
        self, messages: Messages[Request, Response], request: Request, *, max_version: int | None = None
    ) -> None:
        """For Produce with acks=0, to which no broker ever answers."""
        version = self._choose_version(APIS[messages.API_KEY], max_version)
        self._write(messages, request, version)
        await self._drain()

    async def close(self) -> None:
        self._fail(Unavailable(f"the connection to {self.address} was closed"))
        await self._tasks.cancel()

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _learn_versions(self) -> None:
        response = await self.call(
            api_versions, api_versions.ApiVersionsRequest(), timeout_ms=self._options.connect_timeout_ms
        )
        raise_for(response.error_code, f"{self.address} refused to say which versions it speaks")
        self._versions = MappingProxyType(
            {spoken.api_key: (spoken.min_version, spoken.max_version) for spoken in response.api_keys}
        )

    def _choose_version(self, api: Api, max_version: int | None) -> int:
        theirs = self._versions.get(api.key)
        if theirs is not None:
            highest = min(api.max_version, theirs[1], api.max_version if max_version is None else max_version)
            if highest >= max(api.min_version, theirs[0]):
                return highest
        raise Unsupported(
            f"{self.address} speaks no version of {api.name} that this client knows",
            hint="use a broker of Kafka 2.1 or later",
        )

    def _enqueue(
        self, messages: Messages[Request, Response], request: Request, version: int, client_id: str | None
    ) -> asyncio.Future[Response]:
        correlation_id = self._write(messages, request, version, client_id)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def decode(response: memoryview) -> tuple[int, object]:
            end = len(response)
            header = frame.decode_response_header(response, 0, end, APIS[messages.API_KEY], version)
            return header.correlation_id, messages.decode_response(response, header.body_pos, end, version)

        self._pending.append(_Pending(correlation_id, answer, decode))  # type: ignore[arg-type]
        return answer

    def _write(
        self,
        messages: Messages[Request, Response],
        request: Request,
        version: int,
        client_id: str | None = None,
    ) -> int:
        if self._problem is not None:
            raise self._problem
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        api = APIS[messages.API_KEY]
        body = messages.encode_request(request, version)
        sender = client_id or self._options.client_id
        self._writer.writelines(frame.encode_request(api, version, correlation_id, sender, body))
        return correlation_id

    async def _drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError as problem:
            self._fail(_lost(self.address, problem))
        if self._problem is not None:
            raise self._problem

    async def _read_answers(self) -> None:
        try:
            while True:
                first = await self._reader.readexactly(_SIZE_BYTES)
                if first == _HTTP:
                    self._fail(_speaks_http(self.address))
                    return
                size = int.from_bytes(first, "big", signed=True)
                if not _MIN_RESPONSE_BYTES <= size <= self._options.max_response_bytes:
                    raise MalformedRequest(f"a response of {size} bytes")
                self._take_answer(memoryview(await self._reader.readexactly(size)))
        except (OSError, asyncio.IncompleteReadError) as problem:
            self._fail(_lost(self.address, problem))
        except StreamHouseError as problem:
            self._fail(
                NotABroker(
                    f"{self.address} sent what is no answer: {problem.message}", hint="is a Kafka broker on that port?"
                )
            )

    def _take_answer(self, response: memoryview) -> None:
        if not self._pending:
            raise MalformedRequest("an answer to nothing that was asked")
        # It stays in the queue until its answer was understood, so that a failure reaches its caller too.
        pending = self._pending[0]
        answered_id, body = pending.decode(response)
        if answered_id != pending.correlation_id:
            raise MalformedRequest(f"an answer to request {answered_id} instead of {pending.correlation_id}")
        self._pending.popleft()
        if not pending.answer.done():
            pending.answer.set_result(body)

    def _fail(self, problem: StreamHouseError) -> None:
        """The first reason counts; what is pending will not be answered any more."""
        if self._problem is None:
            self._problem = problem
            self._writer.close()
        while self._pending:
            pending = self._pending.popleft()
            if not pending.answer.done():
                pending.answer.set_exception(problem)
                pending.answer.exception()  # a caller that still waits to send hears of it there, and not here


async def dial(address: Address, timeout_ms: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await asyncio.open_connection(address.host, address.port)
    except TimeoutError:
        raise Unavailable(f"{address} did not accept a connection within {timeout_ms} ms") from None
    except socket.gaierror as problem:
        raise Unavailable(f"{address.host} is not a known host: {problem.strerror}", hint="check --bootstrap") from None
    except OSError as problem:
        # A host with several addresses that all refuse gives one error without a number.
        if problem.errno in (errno.ECONNREFUSED, None):
            raise Unavailable(f"no broker at {address}", hint="start one with `streamhouse serve`") from None
        raise Unavailable(f"cannot connect to {address}: {problem.strerror}") from None


def silent_at(address: object, timeout_ms: int) -> Silent:
    return Silent(f"{address} accepts connections and did not answer within {timeout_ms} ms")


def _speaks_http(address: Address) -> NotABroker:
    return NotABroker(
        f"{address} is an HTTP server and no Kafka broker", hint="give a broker's address", speaks_http=True
    )


def _lost(address: Address, problem: BaseException) -> Unavailable:
    reason = getattr(problem, "strerror", None) or "it closed the connection"
    return Unavailable(f"lost the connection to {address}: {reason}")
