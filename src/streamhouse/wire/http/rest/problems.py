"""Whatever goes wrong in the REST API, as a problem document (RFC 9457)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from streamhouse.model.errors import StreamHouseError, UnreadableRecords
from streamhouse.wire.grpc.error_kinds import error_named, kind_names, kind_of
from streamhouse.wire.http.error_statuses import status_of

PROBLEM_JSON = "application/problem+json"
FOREIGN_ORIGIN = "foreign-origin"
"""A page of another site asked. This kind and the next one only HTTP knows."""
FOREIGN_HOST = "foreign-host"
"""A port of this machine alone was called by a name that is not this machine's."""
CODES = (*kind_names(), FOREIGN_ORIGIN, FOREIGN_HOST)


class Problem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was refused. Programs look at `code`, which never changes; people read the rest."""

    type: Annotated[str, Meta(description="Where the kind of problem is described")]
    title: Annotated[str, Meta(description="The kind of problem in words")]
    status: int
    detail: Annotated[str, Meta(description="What went wrong this time")]
    code: Annotated[str, Meta(description="The kind of problem, for programs; the same on gRPC")]
    hint: Annotated[str | None, Meta(description="What to do about it")] = None
    next_offset: Annotated[int | None, Meta(description="Behind records that cannot be read as rows")] = None


def problem_of(error: StreamHouseError) -> Problem:
    next_offset = error.next_offset if isinstance(error, UnreadableRecords) else None
    return problem(kind_of(error).name, status_of(error), error.message, error.hint, next_offset)


def error_of_problem(document: Problem) -> StreamHouseError:
    """The error again, on the other side; its root if the kind is HTTP's alone, or of a newer version."""
    return (error_named(document.code) or StreamHouseError)(document.detail, hint=document.hint)


def problem(code: str, status: int, detail: str, hint: str | None = None, next_offset: int | None = None) -> Problem:
    # Messages may quote a name that came from a client and holds what UTF-8 cannot say.
    return Problem(
        type=f"/docs#{code}",
        title=title_of(code),
        status=status,
        detail=_sayable(detail),
        code=code,
        hint=None if hint is None else _sayable(hint),
        next_offset=next_offset,
    )


def title_of(code: str) -> str:
    return code.replace("-", " ").capitalize()


def _sayable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
