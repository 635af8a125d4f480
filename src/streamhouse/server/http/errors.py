"""Whatever goes wrong with a request, as an answer: our own errors, and those of the router."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from streamhouse.model.errors import StreamHouseError
from streamhouse.server.http.rest.problems import problem_response
from streamhouse.wire.http.error_statuses import error_answer, status_of
from streamhouse.wire.http.planning import PREFIX, ErrorAnswer
from streamhouse.wire.http.rest.problems import problem as problem_document

JSON = "application/json"
_RETRY_AFTER_SECONDS = "1"


def refusal(problem: StreamHouseError) -> Response:
    status = status_of(problem)
    headers = {"Retry-After": _RETRY_AFTER_SECONDS} if status == 503 else None
    return _answer(status, error_answer(problem), headers)


async def router_refusal(request: Request, problem: Exception) -> Response:
    """There is no such path, or not with that method: said in the form of the API whose it would be."""
    assert isinstance(problem, HTTPException)
    kind = "not-found" if problem.status_code == 404 else "unsupported"
    message = f"{request.method[:16]} {request.url.path[:300]}: {problem.detail}"
    headers = dict(problem.headers or {})
    if not request.url.path.startswith(PREFIX):
        hint = "/openapi.json and /docs describe what there is"
        return problem_response(problem_document(kind, problem.status_code, message, hint), headers)
    answer = ErrorAnswer(error=kind, message=message, hint="docs/planning-api.md lists what there is")
    return _answer(problem.status_code, answer, headers)


def _answer(status: int, answer: ErrorAnswer, headers: dict[str, str] | None) -> Response:
    # A name that came from a client may hold what UTF-8 cannot say.
    body = msgspec.json.encode(
        ErrorAnswer(
            error=answer.error,
            message=_sayable(answer.message),
            hint=None if answer.hint is None else _sayable(answer.hint),
        )
    )
    return Response(body, status, headers, JSON)


def _sayable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
