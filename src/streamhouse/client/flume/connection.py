"""One connection to a Flume broker: requests are pipelined and find their answers by their ids."""

from __future__ import annotations

import asyncio
from itertools import count

from streamhouse.client.address import Address
from streamhouse.model.errors import StreamHouseError, Unavailable
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.wire.flume.codes import ApiKey
from streamhouse.wire.flume.frame import (
    RESPONSE_HEADER_BYTES,
    SIZE_BYTES,
    decode_request_id,
    decode_size,
    encode_request,
)

DEFAULT_TIMEOUT_MS = 30_000
_HTTP = b"HTTP"
"""What an HTTP server answers to anything else begins so; as a size it would be more than a gigabyte."""
_WHICH_PORT = "is it a Flume port? That of `streamhouse serve` is 9094"
_MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_MAX_REQUEST_ID = 2**31
_WRITE_HIGH_WATER_BYTES = 1024 * 1024


class FlumeConnection:
    """Made by `open`; when anything goes wrong on it, it closes, and every caller that waits gets the reason."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._ids = count()
        self._waiting: dict[int, asyncio.Future[memoryview]] = {}
        self._unwritten: list[bytes] = []
        self._problem: StreamHouseError | None = None
        self._tasks = TaskGroup(f"flume:{address}")

    @classmethod
    async def open(cls, address: Address, *, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> FlumeConnection:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                reader, writer = await asyncio.open_connection(address.host, address.port)
        except (OSError, TimeoutError) as problem:
            reason = f"no answer within {timeout_ms} ms" if isinstance(problem, TimeoutError) else str(problem)
            raise Unavailable(
                f"cannot connect to {address}: {reason}",
                hint="`streamhouse flume broker` starts one; `streamhouse serve` listens on --flume-port, 9094",
            ) from None
        writer.transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER_BYTES)
        connection = cls(address, reader, writer)
        connection._tasks.start(connection._read_answers(), "answers")
        return connection

    @property
    def is_open(self) -> bool:
        return self._problem is None

    async def call(self, api_key: ApiKey, payload: bytes, *, timeout_ms: int = DEFAULT_TIMEOUT_MS) -> memoryview:
        """The answer's payload."""
        answer = self.send(api_key, payload)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.drain()
                return await answer
        except TimeoutError:
            raise Unavailable(f"{self.address} did not answer within {timeout_ms} ms") from None

    def send(self, api_key: ApiKey, payload: bytes) -> asyncio.Future[memoryview]:
        """A request on its way. Those of one turn of the loop are written together."""
        answer: asyncio.Future[memoryview] = self._loop.create_future()
        if self._problem is not None:
            answer.set_exception(self._problem)
            return answer
        request_id = next(self._ids) % _MAX_REQUEST_ID
        self._waiting[request_id] = answer
        if not self._unwritten:
            self._loop.call_soon(self._write)
        self._unwritten.append(encode_request(api_key, request_id, payload))
        return answer

    async def drain(self) -> None:
        """Until the broker takes more: what it does not take yet should wait with the caller, not here."""
        try:
            await self._writer.drain()
        except OSError as problem:
            self._fail(_lost(self.address, problem))

    async def close(self) -> None:
        self._fail(Unavailable(f"the connection to {self.address} was closed"))
        await self._tasks.cancel()

    def _write(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        if self._problem is None:
            self._writer.writelines(unwritten)

    async def _read_answers(self) -> None:
        try:
            while True:
                first = await self._reader.readexactly(SIZE_BYTES)
                if first == _HTTP:
                    self._fail(_other(self.address, "is an HTTP server"))
                    return
                size = decode_size(first, _MAX_RESPONSE_BYTES)
                response = await self._reader.readexactly(size)
                answer = self._waiting.pop(decode_request_id(response), None)
                if answer is not None and not answer.done():
                    answer.set_result(memoryview(response)[RESPONSE_HEADER_BYTES:])
        except (OSError, EOFError) as problem:
            self._fail(_lost(self.address, problem))
        except StreamHouseError as problem:
            self._fail(_other(self.address, f"speaks something else: {problem.message}"))

    def _fail(self, problem: StreamHouseError) -> None:
        if self._problem is not None:
            return
        self._problem = problem
        self._writer.close()
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(problem)


def _lost(address: Address, problem: Exception) -> Unavailable:
    reason = "it closed the connection" if isinstance(problem, EOFError) else str(problem)
    return Unavailable(f"lost {address}: {reason}", hint=_WHICH_PORT)


def _other(address: Address, what: str) -> Unavailable:
    return Unavailable(f"what answers at {address} is no Flume broker: it {what}", hint=_WHICH_PORT)
