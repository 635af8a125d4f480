"""The REST API's messages of the segments that are in the object store, whether a topic refers to them or not."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from streamhouse.wire.http.rest.problems import Problem


class StoredSegmentsQuery(Struct, frozen=True, kw_only=True):
    prefix: Annotated[str, Meta(max_length=500, description="Whole parts of keys that theirs begin with")] = "segments/"


class StoredSegment(Struct, frozen=True, kw_only=True):
    key: str
    size_bytes: int
    modified_at_ms: int


class StoredSegmentLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of these: a segment, in the order of their keys, and at the end how many they were; or a problem."""

    segment: StoredSegment | None = None
    count: int | None = None
    problem: Problem | None = None
