"""What every call on the gRPC port goes through: its message is waited for, read, answered within a deadline, and
whatever goes wrong becomes a status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from streamhouse.model.errors import MalformedRequest, StreamHouseError
from streamhouse.server.grpc.errors import abort
from streamhouse.server.grpc.messages_in_time import LateMessage

_log = logging.getLogger(__name__)

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Parsed = TypeVar("Parsed")
Context = grpc.aio.ServicerContext[Any, Any]
CheckBytes = Callable[[bytes], object]
"""Looks at a message before it is read and raises if it must not be."""

DEFAULT_DEADLINE_S = 30.0
"""For a caller that gives none."""
LONGEST_DEADLINE_S = 600.0
_MARGIN_S = 0.1
_MARGIN_FRACTION = 0.1


def unary(
    request: type[Request], handle: Callable[[Request, int], Awaitable[Response]], *, check: CheckBytes | None = None
) -> grpc.RpcMethodHandler[Any, Any]:
    """One message in, one out. `handle` is told how many milliseconds it has."""
    return unary_read_by(partial(parse, request=request, check=check), handle)


def unary_read_by(
    read: Callable[[bytes], Parsed], handle: Callable[[Parsed, int], Awaitable[Response]]
) -> grpc.RpcMethodHandler[Any, Any]:
    """The same for a message that is not read as others are.

    To gRPC this is a method with a stream of requests, for only then is it ours to wait for the message: a caller that
    announces one and sends nothing would else hold its place among the concurrent calls forever."""

    async def call(messages: AsyncIterator[bytes], context: Context) -> Response:
        remaining_s = min(_remaining_s(context), LONGEST_DEADLINE_S)
        try:
            async with asyncio.timeout(remaining_s):
                return await handle(read(await only_message(messages)), _budget_ms(remaining_s))
        except Exception as problem:
            await end_with(context, problem)

    return grpc.stream_unary_rpc_method_handler(call, response_serializer=serialize)


async def only_message(messages: AsyncIterator[bytes]) -> bytes:
    try:
        return await anext(messages)
    except StopAsyncIteration:
        raise MalformedRequest("a call without a message") from None


def parse(raw: bytes, request: type[Request], check: CheckBytes | None = None) -> Request:
    if check is not None:
        check(raw)
    try:
        return request.FromString(raw)
    except DecodeError:
        raise MalformedRequest(f"{len(raw)} bytes that are not a {request.DESCRIPTOR.name}") from None


def serialize(response: Message) -> bytes:
    return response.SerializeToString()


async def end_with(context: Context, problem: Exception) -> NoReturn:
    """The status that tells a caller what went wrong. What nobody foresaw is for the log and not for callers."""
    if isinstance(problem, TimeoutError):
        said = str(problem) if isinstance(problem, LateMessage) else "the deadline has passed"
        await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, said)
    if isinstance(problem, StreamHouseError):
        await abort(context, problem)
    _log.error("a gRPC call failed", exc_info=problem)
    await abort(context, StreamHouseError("this node failed; its log says why"))


def _remaining_s(context: Context) -> float:
    remaining_s: float | None = context.time_remaining()
    return DEFAULT_DEADLINE_S if remaining_s is None else remaining_s


def _budget_ms(remaining_s: float) -> int:
    """A little less than the caller waits, so that it hears what went wrong and not only that time is up."""
    return int(1000 * (remaining_s - min(_MARGIN_S, remaining_s * _MARGIN_FRACTION)))
