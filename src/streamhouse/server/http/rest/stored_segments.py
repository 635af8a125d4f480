"""The segments in the object store, for who has no access to it: as many as there are, so they come in lines."""

from __future__ import annotations

from streamhouse.format.object_keys import SEGMENTS_PREFIX, parse_segment_key
from streamhouse.model.errors import InvalidInput, Unavailable
from streamhouse.objects.checks import check_prefix
from streamhouse.objects.store import ObjectStore
from streamhouse.server.http.rest.line_stream import Lines, LineStream
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.wire.http.rest import stored_segments as api
from streamhouse.wire.http.rest.verification import JSON_LINES

_AT_ONCE = 4
_ANSWER_EXAMPLE = (
    '{"segment":{"key":"segments/3f0b6a50-8d0f-4b2e-9c1d-5f6a7b8c9d0e/00000/…","size_bytes":524288,'
    '"modified_at_ms":1767225661000}}\n{"count":1}\n'
)


class StoredSegments:
    def __init__(self, rest: Rest, objects: ObjectStore) -> None:
        self._objects = objects
        self._listings = 0
        rest.route(
            "GET",
            f"{API}/segments",
            self.all,
            summary="List the segments in the object store",
            description="Also those that no topic refers to any more. The answer comes in lines of JSON, each of them "
            "one of `segment`, `count` and `problem`; the count, or a problem, is the last.",
            tag="cluster",
            query=api.StoredSegmentsQuery,
            media_type=JSON_LINES,
            answer_example=_ANSWER_EXAMPLE,
            errors=(InvalidInput, Unavailable),
        )

    async def all(self, call: Call) -> LineStream:
        prefix = check_prefix(call.query.prefix)
        if not prefix.startswith(SEGMENTS_PREFIX):
            raise InvalidInput(f"{prefix[:300]!r} is not a prefix of segments", hint=f"begin with {SEGMENTS_PREFIX}")
        self._check_has_place()
        return LineStream(self._lines(prefix))

    def _check_has_place(self) -> None:
        if self._listings >= _AT_ONCE:
            raise Unavailable("too many list the object store at once", hint="try again")

    async def _lines(self, prefix: str) -> Lines:
        self._check_has_place()
        self._listings += 1
        count = 0
        try:
            async for info in self._objects.list(prefix):
                if parse_segment_key(info.key) is None:
                    continue
                count += 1
                yield api.StoredSegmentLine(
                    segment=api.StoredSegment(
                        key=info.key, size_bytes=info.size_bytes, modified_at_ms=info.modified_at_ms
                    )
                )
        finally:
            self._listings -= 1
        yield api.StoredSegmentLine(count=count)
