"""Problem documents as answers."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from streamhouse.model.errors import StreamHouseError
from streamhouse.wire.http.rest.problems import PROBLEM_JSON, Problem, problem_of

_RETRY_AFTER_SECONDS = "1"


def refuse(error: StreamHouseError) -> Response:
    return problem_response(problem_of(error))


def problem_response(problem: Problem, headers: dict[str, str] | None = None) -> Response:
    headers = dict(headers or {})
    if problem.status == 503:
        headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return Response(msgspec.json.encode(problem), problem.status, headers, PROBLEM_JSON)
