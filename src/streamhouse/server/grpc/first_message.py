"""A call's first message has to come in time: until then it holds a place among the calls, and what was sent of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any

import grpc

Behaviour = Callable[[AsyncIterator[bytes], Any], Awaitable[Any]]


class FirstMessageInTime(grpc.aio.ServerInterceptor):
    """The methods of a node are coroutines with streams of requests, so that it is up to them when a message is waited
    for. Others are left as they are."""

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_s = timeout_ms / 1000

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
        return await behaviour(_Messages(messages, self._timeout_s), context)


class _Messages(AsyncIterator[bytes]):
    def __init__(self, messages: AsyncIterator[bytes], timeout_s: float) -> None:
        self._messages = messages
        self._timeout_s: float | None = timeout_s

    async def __anext__(self) -> bytes:
        timeout_s, self._timeout_s = self._timeout_s, None
        if timeout_s is None:
            return await anext(self._messages)
        async with asyncio.timeout(timeout_s):
            return await anext(self._messages)
