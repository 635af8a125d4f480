"""A call's messages have to come in time: until then it holds a place among the calls, and what was sent of them.

gRPC shows no part of a message, so one that sends nothing cannot be told from one that has sent half. A message that is
not asked for stays with its client, by the flow control of HTTP/2; but the next message of a stream may come at any
moment, and has to be asked for all the time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

import grpc

Behaviour = Callable[[AsyncIterator[bytes], Any], Awaitable[Any]]
CROWDED_S = 5.0
"""For a first message, while as many are awaited as there is room for: most come together with their calls."""


class LateMessage(TimeoutError):
    """What it says is for the caller."""


class MessagesInTime(grpc.aio.ServerInterceptor):
    """The methods of a node are coroutines with streams of requests, so that it is up to them when a message is waited
    for. Others are left as they are."""

    def __init__(self, *, first_ms: int, next_ms: int, room: int) -> None:
        """How long a call's first message may take, and how long a stream may be silent after it; and how many
        messages there is memory for."""
        self._first_s = first_ms / 1000
        self.next_s = next_ms / 1000
        self._room = room
        self._awaited = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        behaviour = None if handler is None else handler.stream_unary or handler.stream_stream
        if not iscoroutinefunction(behaviour):
            return handler
        wrap = grpc.stream_unary_rpc_method_handler if handler.stream_unary else grpc.stream_stream_rpc_method_handler
        return wrap(partial(self._call, behaviour), handler.request_deserializer, handler.response_serializer)

    async def _call(self, behaviour: Behaviour, messages: AsyncIterator[bytes], context: Any) -> Any:
        return await behaviour(_Messages(messages, self), context)

    @contextmanager
    def awaiting_first(self) -> Iterator[float]:
        """For how many seconds: nobody is kept waiting by others, but those that are slow are given up sooner."""
        is_crowded = self._awaited >= self._room
        self._awaited += 1
        try:
            yield min(self._first_s, CROWDED_S) if is_crowded else self._first_s
        finally:
            self._awaited -= 1


class _Messages(AsyncIterator[bytes]):
    def __init__(self, messages: AsyncIterator[bytes], limits: MessagesInTime) -> None:
        self._messages = messages
        self._limits = limits
        self._is_first = True

    async def __anext__(self) -> bytes:
        if not self._is_first:
            return await self._next(self._limits.next_s, "the stream was silent for too long: open another one")
        self._is_first = False
        with self._limits.awaiting_first() as timeout_s:
            return await self._next(timeout_s, "the first message took too long to arrive")

    async def _next(self, timeout_s: float, late: str) -> bytes:
        try:
            async with asyncio.timeout(timeout_s):
                return await anext(self._messages)
        except TimeoutError:
            raise LateMessage(late) from None
