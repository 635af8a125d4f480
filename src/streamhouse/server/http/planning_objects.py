"""Routes of the planning API to objects themselves, for callers without keys to the object store: where the store has
no URLs of its own to give out, these are the ones."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from streamhouse.format.object_keys import SEGMENTS_PREFIX, STAGING_PREFIX, parse_staged_object_key
from streamhouse.model.errors import InvalidInput, NotFound, OffsetOutOfRange
from streamhouse.objects.checks import check_key
from streamhouse.server.http.calls import BYTES
from streamhouse.server.http.context import PlanningContext
from streamhouse.wire.http.planning import PREFIX

# A slow reader keeps this much in memory, and not the object.
_CHUNK_BYTES = 2**20
_RANGE = re.compile(r"bytes=(?P<first>\d{0,18})-(?P<last>\d{0,18})", re.ASCII)


def object_routes(context: PlanningContext) -> list[Route]:
    objects = _PlanningObjects(context)
    path = f"{PREFIX}/objects/{{key:path}}"
    return [context.calls.raw(path, "GET", objects.read), context.calls.raw(path, "PUT", objects.write)]


class _PlanningObjects:
    def __init__(self, context: PlanningContext) -> None:
        self._context = context
        self._objects = context.objects

    async def read(self, request: Request) -> Response:
        """Of segments alone: what else is in the bucket is nobody's business. With Range, one range."""
        key = _key(request, SEGMENTS_PREFIX)
        size_bytes = (await self._objects.head(key)).size_bytes
        start, end, is_part = _wanted(request.headers.get("range"), size_bytes)
        headers = {"Accept-Ranges": "bytes", "Content-Length": str(end - start)}
        if is_part:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{size_bytes}"
        return StreamingResponse(self._chunks(key, start, end), 206 if is_part else 200, headers, BYTES)

    async def _chunks(self, key: str, start: int, end: int) -> AsyncIterator[bytes]:
        for position in range(start, end, _CHUNK_BYTES):
            yield await self._objects.get_range(key, position, min(position + _CHUNK_BYTES, end))

    async def write(self, request: Request) -> Response:
        """Of what a sink's tasks stage alone; AlreadyExists if the key is taken."""
        key = _key(request, STAGING_PREFIX)
        if parse_staged_object_key(key) is None:
            raise InvalidInput(f"{key[:300]!r} is not the key of a staged object")
        async with self._context.calls.body(request) as parts:
            await self._objects.create(key, parts)
        return Response(status_code=201)


def _key(request: Request, prefix: str) -> str:
    key = check_key(request.path_params["key"])
    if not key.startswith(prefix):
        raise NotFound(f"no object {key[:300]!r} here", hint=f"only those below {prefix} can be asked for so")
    return key


def _wanted(header: str | None, size_bytes: int) -> tuple[int, int, bool]:
    """Bytes [start, end), and whether they are a part; what cannot be understood is ignored, as HTTP has it."""
    match = _RANGE.fullmatch(header.strip()) if header is not None else None
    if match is None or not match["first"] + match["last"]:
        return 0, size_bytes, False
    if match["first"]:
        start, end = int(match["first"]), min(int(match["last"] or size_bytes) + 1, size_bytes)
        if match["last"] and int(match["last"]) < start:
            return 0, size_bytes, False
    else:
        start, end = max(0, size_bytes - int(match["last"])), size_bytes
    if start >= size_bytes or start >= end:
        raise OffsetOutOfRange(f"the object has {size_bytes} bytes")
    return start, end, True
