"""The operations of the REST API: from what is registered here come both the routing and the OpenAPI document, so that
neither can say what the other does not.

    def add_topics(rest: Rest, context: DoorContext) -> None:
        rest.route(
            "GET", f"{API}/topics/{{topic}}", handle, summary="One topic", tag="topics", answer=TopicAnswer,
            errors=(NotFound,), answer_example=TopicAnswer(name="orders", …),
        )

A handler is given a `Call` and returns the answer's message, or a `Response` where it needs a status or headers of its
own, or raises one of our errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.websockets import WebSocket

from streamhouse.model.errors import InvalidInput, MalformedRequest, StreamHouseError
from streamhouse.server.http.calls import MAX_MESSAGE_BYTES, HttpCalls, decode_json
from streamhouse.server.http.errors import JSON
from streamhouse.server.http.rest.origins import foreign_origin
from streamhouse.server.http.rest.problems import problem_response, refuse
from streamhouse.server.http.rest.query import no_query, query_reader

API = "/api/v1"
NUMBERS = {"partition": 2**31 - 1, "base_offset": 2**63 - 1}
"""The parts of paths that are numbers from 0 on, and how large each may be."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is given: `query` and `body` are messages of the types that its operation names, or None."""

    path: Mapping[str, str]
    query: Any
    body: Any
    request: Request

    def number(self, name: str) -> int:
        """A part of the path that is a number, such as a partition."""
        text = self.path[name]
        if not (text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= NUMBERS[name]):
            raise InvalidInput(f"{text[:40]!r} is not a {name.replace('_', ' ')}", hint="a whole number from 0 on")
        return int(text)


Handle = Callable[[Call], Awaitable[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    method: str
    path: str
    handle: Handle
    summary: str
    tag: str
    description: str = ""
    query: type[msgspec.Struct] | None = None
    body: Any = None
    answer: Any = None
    status: int = 200
    errors: tuple[type[StreamHouseError], ...] = ()
    media_type: str = JSON
    body_example: object = None
    answer_example: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Those that a request must have, and what each says."""
    other_answers: Mapping[int, str] = field(default_factory=dict)
    """Statuses beside `status` with which the same message is answered, and when."""


class Rest:
    def __init__(self, calls: HttpCalls) -> None:
        self._calls = calls
        self._operations: list[Operation] = []
        self._sockets: list[WebSocketRoute] = []

    @property
    def operations(self) -> tuple[Operation, ...]:
        return tuple(self._operations)

    def route(
        self,
        method: str,
        path: str,
        handle: Handle,
        *,
        summary: str,
        tag: str,
        description: str = "",
        query: type[msgspec.Struct] | None = None,
        body: Any = None,
        answer: Any = None,
        status: int | None = None,
        errors: tuple[type[StreamHouseError], ...] = (),
        media_type: str = JSON,
        body_example: object = None,
        answer_example: object = None,
        headers: Mapping[str, str] | None = None,
        other_answers: Mapping[int, str] | None = None,
    ) -> None:
        """`query` and `body` are what a request must have, and become `Call.query` and `Call.body`. An operation
        without `answer` answers 204, unless its `media_type` is not JSON. `errors` are those worth describing: any may
        be raised."""
        has_content = answer is not None or media_type != JSON
        self._operations.append(
            Operation(
                method=method,
                path=path,
                handle=handle,
                summary=summary,
                tag=tag,
                description=description,
                query=query,
                body=body,
                answer=answer,
                status=status or (200 if has_content else 204),
                errors=errors,
                media_type=media_type,
                body_example=body_example,
                answer_example=answer_example,
                headers=headers or {},
                other_answers=other_answers or {},
            )
        )

    def socket(self, path: str, handle: Callable[[WebSocket], Awaitable[None]]) -> None:
        """A WebSocket, for which OpenAPI has no words: describe it at the operation that it is a variant of."""
        self._sockets.append(WebSocketRoute(path, handle))

    def routes(self) -> list[BaseRoute]:
        """One for each path: so that a method that it does not have is refused with all that it has."""
        by_path: dict[str, dict[str, Callable[[Request], Awaitable[Response]]]] = {}
        for operation in self._operations:
            by_path.setdefault(operation.path, {})[operation.method] = self._endpoint(operation)
        return [*(self._route(path, methods) for path, methods in by_path.items()), *self._sockets]

    def _route(self, path: str, methods: Mapping[str, Callable[[Request], Awaitable[Response]]]) -> Route:
        async def by_method(request: Request) -> Response:
            return await methods["GET" if request.method == "HEAD" else request.method](request)

        return Route(path, self._calls.endpoint(by_method, refuse), methods=list(methods))

    def _endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        read_query = no_query if operation.query is None else query_reader(operation.query)
        decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)
        changes_something = operation.method != "GET"
        calls, handle, status, media_type = self._calls, operation.handle, operation.status, operation.media_type

        async def endpoint(request: Request) -> Response:
            if changes_something and (problem := foreign_origin(request.headers)) is not None:
                return problem_response(problem)
            query = read_query(request)
            if decoder is None:
                answer = await handle(Call(request.path_params, query, None, request))
            else:
                if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
                    raise MalformedRequest("the body is not said to be JSON", hint=f"send Content-Type: {JSON}")
                # Messages may refer to the body's bytes, which therefore count until there is an answer.
                async with calls.body(request, MAX_MESSAGE_BYTES) as parts:
                    body = decode_json(decoder, b"".join(parts))
                    answer = await handle(Call(request.path_params, query, body, request))
            return answer if isinstance(answer, Response) else respond(answer, status, media_type)

        return endpoint


def respond(answer: object, status: int = 200, media_type: str = JSON) -> Response:
    """Text and bytes as they are, a message as JSON, None as nothing."""
    if answer is None:
        return Response(status_code=status if status != 200 else 204)
    if isinstance(answer, str | bytes):
        return Response(answer, status, media_type=media_type)
    return Response(msgspec.json.encode(answer), status, media_type=media_type)
