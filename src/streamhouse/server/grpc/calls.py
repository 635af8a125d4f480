"""What every call on the gRPC port goes through: its message is waited for, read, answered within a deadline, and
whatever goes wrong becomes a status."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from streamhouse.model.errors import MalformedRequest, StreamHouseError
from streamhouse.server.grpc.errors import abort

_log = logging.getLogger(__name__)

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

DEFAULT_DEADLINE_S = 30.0
"""For a caller that gives none."""
LONGEST_DEADLINE_S = 600.0
_MARGIN_S = 0.1
_MARGIN_FRACTION = 0.1


def unary(
    request: type[Request], handle: Callable[[Request, int], Awaitable[Response]]
) -> grpc.RpcMethodHandler[Any, Any]:
    """One message in, one out. `handle` is told how many milliseconds it has.

    To gRPC this is a method with a stream of requests, for only then is it ours to wait for the message: a caller that
    announces one and sends nothing would else hold its place among the concurrent calls forever."""

    async def call(messages: AsyncIterator[bytes], context: grpc.aio.ServicerContext[Any, Any]) -> Response:
        problem: StreamHouseError
        remaining_s = min(_remaining_s(context), LONGEST_DEADLINE_S)
        try:
            async with asyncio.timeout(remaining_s):
                return await handle(await _only_message(messages, request), _budget_ms(remaining_s))
        except TimeoutError:
            await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline has passed")
        except StreamHouseError as refusal:
            problem = refusal
        except Exception:
            _log.exception("a gRPC call failed")
            problem = StreamHouseError("this node failed; its log says why")
        await abort(context, problem)

    return grpc.stream_unary_rpc_method_handler(call, response_serializer=_serialize)


async def _only_message(messages: AsyncIterator[bytes], request: type[Request]) -> Request:
    try:
        raw = await anext(messages)
    except StopAsyncIteration:
        raise MalformedRequest("a call without a message") from None
    try:
        return request.FromString(raw)
    except DecodeError:
        raise MalformedRequest(f"{len(raw)} bytes that are not a {request.DESCRIPTOR.name}") from None


def _remaining_s(context: grpc.aio.ServicerContext[Any, Any]) -> float:
    remaining_s: float | None = context.time_remaining()
    return DEFAULT_DEADLINE_S if remaining_s is None else remaining_s


def _budget_ms(remaining_s: float) -> int:
    """A little less than the caller waits, so that it hears what went wrong and not only that time is up."""
    return int(1000 * (remaining_s - min(_MARGIN_S, remaining_s * _MARGIN_FRACTION)))


def _serialize(response: Message) -> bytes:
    return response.SerializeToString()
