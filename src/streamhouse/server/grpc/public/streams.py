"""Calls whose answer is a stream: so many at once, as long as their client wants, and ended when the node stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic

import grpc

from streamhouse.model.errors import Unavailable
from streamhouse.runtime import tasks
from streamhouse.server.grpc.calls import (
    DEFAULT_DEADLINE_S,
    Context,
    Parsed,
    Request,
    Response,
    end_with,
    only_message,
    parse,
    serialize,
)
from streamhouse.server.grpc.public.message_limits import check_question

MAX_STREAMS = 500
"""Half of the calls that the port takes, so that open streams never keep out the calls between nodes."""


CONVERSATIONS_FOR_ROOM = 4
"""Streams of requests, for each of the largest messages that there is room for: each may have sent half of one, and few
ever do."""


class Answers(Generic[Response]):
    """The client's end of a stream. What is sent waits until the client has taken enough of what was sent before."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._sending: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Send the headers: the client then knows that the call stands, also while there is nothing to send."""
        await self._send(self._context.send_initial_metadata(()))

    async def send(self, response: Response) -> None:
        await self._send(self._context.write(response))

    async def _send(self, work: Coroutine[Any, Any, None]) -> None:
        self._sending = tasks.begin(work)
        await asyncio.shield(self._sending)

    async def settle(self) -> None:
        """Until what was being sent is on its way: a status that meets the headers there is refused by gRPC, and the
        client would wait for it for ever. If the client takes nothing, until the call is ended from outside."""
        if self._sending is not None:
            with suppress(Exception):
                await self._sending


class Streams:
    def __init__(self, max_streams: int = MAX_STREAMS, *, max_conversations: int = MAX_STREAMS) -> None:
        """`max_conversations`: of the streams, those whose clients send more than one message."""
        self._max_streams = max_streams
        self._max_conversations = max_conversations
        self._conversations = 0
        self._deadlines: set[asyncio.Timeout] = set()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._deadlines)

    def answering(
        self, request: type[Request], handle: Callable[[Request, Answers[Response]], Awaitable[None]]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """One message in, many out. As in `unary`, it is a stream of requests to gRPC."""

        async def converse(messages: AsyncIterator[bytes], answers: Answers[Response]) -> None:
            async with asyncio.timeout(DEFAULT_DEADLINE_S):
                raw = await only_message(messages)
            await handle(parse(raw, request, check_question), answers)

        return self._method(converse)

    def conversing(
        self,
        read: Callable[[bytes], Parsed],
        handle: Callable[[AsyncIterator[Parsed], Answers[Response]], Awaitable[None]],
    ) -> grpc.RpcMethodHandler[Any, Any]:
        """Many in, many out."""

        async def requests(messages: AsyncIterator[bytes]) -> AsyncIterator[Parsed]:
            async for raw in messages:
                yield read(raw)

        async def converse(messages: AsyncIterator[bytes], answers: Answers[Response]) -> None:
            with self._conversing():
                await handle(requests(messages), answers)

        return self._method(converse)

    def stop(self) -> None:
        """End those that are open, such that their clients go elsewhere, and take no more."""
        self._is_stopping = True
        now = asyncio.get_running_loop().time()
        for deadline in self._deadlines:
            deadline.reschedule(now)

    def _method(
        self, converse: Callable[[AsyncIterator[bytes], Answers[Response]], Awaitable[None]]
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def call(messages: AsyncIterator[bytes], context: Context) -> None:
            answers: Answers[Response] = Answers(context)
            try:
                self._refuse_too_many()
                async with asyncio.timeout(context.time_remaining()) as deadline:
                    with self._counted(deadline):
                        await converse(messages, answers)
            except Exception as problem:
                await answers.settle()
                is_stopped = isinstance(problem, TimeoutError) and self._is_stopping
                await end_with(context, _stopping() if is_stopped else problem)

        return grpc.stream_stream_rpc_method_handler(call, response_serializer=serialize)

    def _refuse_too_many(self) -> None:
        if self._is_stopping:
            raise _stopping()
        if len(self._deadlines) >= self._max_streams:
            raise Unavailable(
                f"this node has {self._max_streams} streams open, which is all that it takes", hint="try another node"
            )

    @contextmanager
    def _conversing(self) -> Iterator[None]:
        if self._conversations >= self._max_conversations:
            raise Unavailable(
                f"this node has {self._conversations} streams of requests open, which is all that it takes",
                hint="try another node, or give this one more receive_bytes",
            )
        self._conversations += 1
        try:
            yield
        finally:
            self._conversations -= 1

    @contextmanager
    def _counted(self, deadline: asyncio.Timeout) -> Iterator[None]:
        self._deadlines.add(deadline)
        try:
            yield
        finally:
            self._deadlines.discard(deadline)


def _stopping() -> Unavailable:
    return Unavailable("this node stops", hint="try another node, or this one later")
