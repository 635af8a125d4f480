"""A gRPC connection to one node: calls that are only sent when it stands, and errors as what they were there."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import grpc
from google.protobuf.message import Message

from streamhouse.model.errors import StreamHouseError, Unavailable, Unsupported
from streamhouse.wire.grpc.error_kinds import ERROR_KIND_KEY, error_named

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)

CONNECT_TIMEOUT_MS = 2_000
_FIRST_RECONNECT_MS = 100
_LONGEST_RECONNECT_MS = 1_000
# A node that vanished without a word is noticed after this, also by calls without much of a deadline.
_KEEPALIVE_TIME_MS = 10_000
_KEEPALIVE_TIMEOUT_MS = 5_000
_NO_PEER = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


class GrpcChannel:
    """The connection is made when it is first needed, kept, and made again when it was lost.

    A call is only sent on a connection that stands. So what cannot be reached has surely done nothing, and what was
    sent and not answered is told from it."""

    def __init__(self, address: str, *, max_message_bytes: int, connect_timeout_ms: int = CONNECT_TIMEOUT_MS) -> None:
        """`max_message_bytes`: the largest message that is taken."""
        self.address = address
        self._connect_timeout_ms = connect_timeout_ms
        self._is_closed = False
        self.channel = grpc.aio.insecure_channel(
            address,
            options=(
                # Nodes are addressed directly, whatever the environment says about proxies.
                ("grpc.enable_http_proxy", 0),
                ("grpc.use_local_subchannel_pool", 1),
                ("grpc.max_receive_message_length", max_message_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.initial_reconnect_backoff_ms", _FIRST_RECONNECT_MS),
                ("grpc.min_reconnect_backoff_ms", connect_timeout_ms),
                ("grpc.max_reconnect_backoff_ms", _LONGEST_RECONNECT_MS),
                ("grpc.keepalive_time_ms", _KEEPALIVE_TIME_MS),
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
                # gRPC waits a minute for the answer to a ping, whatever the line above says.
                ("grpc.http2.ping_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
            ),
        )

    async def close(self) -> None:
        """Calls under way fail as if the connection were lost."""
        self._is_closed = True
        await self.channel.close()

    def unary(
        self, service: str, name: str, request: type[Request], response: type[Response]
    ) -> grpc.aio.UnaryUnaryMultiCallable[Request, Response]:
        return self.channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )

    def unary_stream(
        self, service: str, name: str, request: type[Request], response: type[Response]
    ) -> grpc.aio.UnaryStreamMultiCallable[Request, Response]:
        return self.channel.unary_stream(
            f"/{service}/{name}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )

    async def call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Response],
        request: Request,
        timeout_ms: int,
        *,
        if_lost: type[Unavailable] = Unavailable,
    ) -> Response:
        """`if_lost`: what it means that a request was sent and not answered."""
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        await self.connected(min(timeout_ms, self._connect_timeout_ms))
        try:
            return await method(request, timeout=max(0.0, deadline - asyncio.get_running_loop().time()))
        except grpc.aio.AioRpcError as problem:
            raise self.error_of(problem, if_lost) from None
        except asyncio.CancelledError:
            # gRPC raises this also when its channel is closed. It must not pass for a cancellation of the caller's.
            task = asyncio.current_task()
            if not self._is_closed or (task is not None and task.cancelling()):
                raise
            raise if_lost(f"the connection to {self.address} was closed") from None

    async def connected(self, timeout_ms: int | None = None) -> None:
        """Unavailable if that is not so in time."""
        timeout_ms = self._connect_timeout_ms if timeout_ms is None else timeout_ms
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while not self._is_closed:
                    state = self.channel.get_state(try_to_connect=True)
                    if state is grpc.ChannelConnectivity.READY:
                        return
                    if state in _NO_PEER:
                        break
                    await self.channel.wait_for_state_change(state)
        except TimeoutError:
            raise Unavailable(f"{self.address} did not accept a connection within {timeout_ms} ms") from None
        raise Unavailable(f"{self.address} cannot be reached", hint="try again")

    def error_of(self, problem: grpc.aio.AioRpcError, if_lost: type[Unavailable] = Unavailable) -> StreamHouseError:
        details = problem.details() or problem.code().name
        named = next((value for key, value in problem.trailing_metadata() if key == ERROR_KIND_KEY), None)
        if named is not None:
            kind = error_named(named if isinstance(named, str) else named.decode("ascii", "replace"))
            return (kind or StreamHouseError)(details)
        match problem.code():
            case grpc.StatusCode.RESOURCE_EXHAUSTED:  # refused before anything was done: too many calls, too many bytes
                return Unavailable(f"{self.address} refused a call: {details}")
            case grpc.StatusCode.UNIMPLEMENTED:
                return Unsupported(f"{self.address} does not offer this call", hint="is it a node of this version?")
            case _:
                return if_lost(f"{self.address} did not answer: {details}")
