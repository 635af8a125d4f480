"""A request's query as a message."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.requests import HTTPConnection

from streamhouse.model.errors import InvalidInput

Query = TypeVar("Query", bound=msgspec.Struct)


def query_reader(message: type[Query]) -> Callable[[HTTPConnection], Query]:
    """What is not known is refused, as a misspelt filter would otherwise filter nothing."""
    names = {each.encode_name: each.name for each in msgspec.structs.fields(message)}
    known = tuple(names)

    def read(request: HTTPConnection) -> Query:
        given = _given(request, known)
        try:
            query = msgspec.convert(given, message, strict=False)
        except msgspec.ValidationError as problem:
            raise InvalidInput(f"the query is not what this call takes: {problem}") from None
        for name in given:
            if getattr(query, names[name]) is None:  # by the word null, which only leaving it out says
                raise InvalidInput(f"{given[name]!r} is not what {name} takes", hint="leave it out")
        return query

    return read


def no_query(request: HTTPConnection) -> None:
    if request.scope["query_string"]:
        _given(request, ())


def _given(request: HTTPConnection, known: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for name, value in request.query_params.multi_items():
        if name not in known:
            can_be = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InvalidInput(f"this call has no parameter {name[:60]!r}", hint=can_be)
        if name in given:
            raise InvalidInput(f"{name} is given more than once", hint="give it once")
        given[name] = value
    return given
