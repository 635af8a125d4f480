"""A gRPC call that answers with a stream, made again when the connection was lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from streamhouse.client.cluster import DEFAULT_RETRY_MS
from streamhouse.client.errors import RETRIABLE
from streamhouse.client.grpc_channel import GrpcChannel
from streamhouse.model.errors import StreamHouseError
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

Response = TypeVar("Response", bound=Message)


class _Call(Generic[Response]):
    """One call's answers, read ahead by one: to give up waiting for the next one would otherwise end the call."""

    def __init__(self, channel: GrpcChannel, call: grpc.aio.UnaryStreamCall[Any, Response]) -> None:
        self._channel = channel
        self._call = call
        self._arrived: asyncio.Queue[Response | StreamHouseError | None] = asyncio.Queue(1)
        self._tasks = TaskGroup("gRPC stream")
        self._tasks.start(self._read(), "answers")
        self.has_ended = False

    async def next(self, max_wait_ms: float) -> Response | None:
        """None if nothing comes within the wait, or if the stream has come to its end."""
        try:
            async with asyncio.timeout(max_wait_ms / 1000):
                arrived = await self._arrived.get()
        except TimeoutError:
            return None
        if isinstance(arrived, StreamHouseError):
            raise arrived
        self.has_ended = arrived is None
        return arrived

    async def close(self) -> None:
        self._call.cancel()
        await self._tasks.cancel()

    async def _read(self) -> None:
        try:
            async for answer in self._call:
                await self._arrived.put(answer)
        except grpc.aio.AioRpcError as problem:
            await self._arrived.put(self._channel.error_of(problem))
        else:
            await self._arrived.put(None)


class LastingStream(Generic[Response]):
    """`open_call` makes the call, from where its owner is by then; what failed for `retry_ms` in a row is raised."""

    def __init__(
        self,
        channel: GrpcChannel,
        clock: Clock,
        open_call: Callable[[], grpc.aio.UnaryStreamCall[Any, Response]],
        *,
        retry_ms: int = DEFAULT_RETRY_MS,
    ) -> None:
        self._channel = channel
        self._clock = clock
        self._open_call = open_call
        self._retry_ms = retry_ms
        self._call: _Call[Response] | None = None
        self._failing_since_ms: int | None = None
        self._waits = backoff_ms(limit_ms=1_000)

    @property
    def has_ended(self) -> bool:
        """The node has nothing more to say, and no reason to complain."""
        return self._call is not None and self._call.has_ended

    async def next(self, max_wait_ms: float) -> Response | None:
        """None if nothing comes within the wait, or if the stream has come to its end."""
        deadline_ms = self._clock.monotonic_ms() + max_wait_ms
        while not self.has_ended:
            left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            try:
                if self._call is None:
                    await self._channel.connected()
                    self._call = _Call(self._channel, self._open_call())
                answer = await self._call.next(left_ms)
            except RETRIABLE as problem:
                await self.close()
                await self._wait_after(problem, left_ms)
            else:
                if answer is not None:
                    self._failing_since_ms, self._waits = None, backoff_ms(limit_ms=1_000)
                return answer
            if left_ms <= 0:
                break
        return None

    async def close(self) -> None:
        call, self._call = self._call, None
        if call is not None:
            await call.close()

    async def _wait_after(self, problem: StreamHouseError, left_ms: float) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._failing_since_ms is None:
            self._failing_since_ms = now_ms
        elif now_ms - self._failing_since_ms >= self._retry_ms:
            raise problem
        await self._clock.sleep_ms(min(next(self._waits), left_ms))
