"""What every request goes through: its body is bounded, waited for and read, and whatever goes wrong is an answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from streamhouse.log.budget import ByteBudget
from streamhouse.model.errors import BatchTooLarge, MalformedRequest, StreamHouseError, Unavailable
from streamhouse.model.settings import Settings
from streamhouse.server.http.errors import JSON, refusal
from streamhouse.server.http.rest.origins import foreign_origin
from streamhouse.server.http.rest.problems import problem_response

_log = logging.getLogger(__name__)

Message = TypeVar("Message")
Handler = Callable[[Request], Awaitable[Response]]

BYTES = "application/octet-stream"
MAX_MESSAGE_BYTES = 16 * 2**20
MAX_CALLS = 512
"""Under way at once; those beyond are refused, and callers try again."""


class HttpCalls:
    """Makes routes, all of which share limits on memory, time and number."""

    def __init__(self, settings: Settings, *, max_calls: int = MAX_CALLS) -> None:
        self._max_body_bytes = settings.max_request_bytes
        self._receive_timeout_s = settings.request_timeout / 1000
        self._receiving = ByteBudget(settings.receive_bytes)
        self._max_calls = max_calls
        self._calls = 0

    def get(self, path: str, handle: Callable[[Request], Awaitable[object]]) -> Route:
        """What `handle` returns is the answer: bytes as they are, all else as JSON, None as nothing."""

        async def call(request: Request) -> Response:
            return _answer(await handle(request))

        return self.raw(path, "GET", call)

    def post(self, path: str, message: type[Message], handle: Callable[[Message, Request], Awaitable[object]]) -> Route:
        """A message in JSON; the answer as for `get`."""
        decoder = msgspec.json.Decoder(message)

        async def call(request: Request) -> Response:
            # Which a page in a browser cannot send to another's server without being asked whether it may.
            if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
                raise MalformedRequest("the body is not said to be JSON", hint=f"send Content-Type: {JSON}")
            async with self.body(request, MAX_MESSAGE_BYTES) as parts:
                decoded = decode_json(decoder, b"".join(parts))
            return _answer(await handle(decoded, request))

        return self.raw(path, "POST", call)

    def raw(self, path: str, method: str, handle: Handler) -> Route:
        """For bodies and answers that are not JSON; errors are."""

        async def call(request: Request) -> Response:
            if method != "GET" and (problem := foreign_origin(request.headers)) is not None:
                return problem_response(problem)
            return await handle(request)

        return Route(path, self.endpoint(call, refusal), methods=[method])

    def endpoint(self, handle: Handler, refuse: Callable[[StreamHouseError], Response]) -> Handler:
        """Within the limit on calls, with every error answered in the form that `refuse` gives it."""

        async def endpoint(request: Request) -> Response:
            if self._calls >= self._max_calls:
                return refuse(Unavailable("too many requests at once", hint="try again"))
            self._calls += 1
            try:
                return await handle(request)
            except StreamHouseError as problem:
                return refuse(problem)
            except ClientDisconnect:
                return Response(status_code=400)  # which nobody reads
            except Exception:
                _log.exception("an HTTP request failed")
                return refuse(StreamHouseError("this node failed; its log says why"))
            finally:
                self._calls -= 1

        return endpoint

    @asynccontextmanager
    async def body(self, request: Request, limit_bytes: int | None = None) -> AsyncIterator[list[bytes]]:
        """The whole body in parts; its memory is accounted for as long as the block lasts."""
        limit_bytes = self._max_body_bytes if limit_bytes is None else limit_bytes
        declared = request.headers.get("content-length", "0")
        if declared.isdigit() and int(declared) > limit_bytes:
            raise _too_large(limit_bytes)
        parts: list[bytes] = []
        size_bytes = 0
        try:
            async with asyncio.timeout(self._receive_timeout_s):
                async for part in request.stream():
                    if self._receiving.is_full:
                        raise Unavailable("too many requests are being received", hint="try again")
                    self._receiving.take(len(part))
                    size_bytes += len(part)
                    parts.append(part)
                    if size_bytes > limit_bytes:
                        raise _too_large(limit_bytes)
        except BaseException as problem:
            self._receiving.give_back(size_bytes)
            if isinstance(problem, TimeoutError):
                raise MalformedRequest("the body took too long to arrive") from None
            raise
        try:
            yield parts
        finally:
            self._receiving.give_back(size_bytes)


def _too_large(limit_bytes: int) -> BatchTooLarge:
    return BatchTooLarge(f"the body is larger than {limit_bytes} bytes", hint="send less at once")


def decode_json(decoder: msgspec.json.Decoder[Message], body: bytes) -> Message:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise MalformedRequest(f"the body is not what this call takes: {problem}") from None


def _answer(value: object) -> Response:
    if value is None:
        return Response(status_code=204)
    if isinstance(value, bytes):
        return Response(value, media_type=BYTES)
    return Response(msgspec.json.encode(value), media_type=JSON)
