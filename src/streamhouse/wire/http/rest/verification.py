"""The REST API's messages of a verification: what is asked, and the lines of the answer."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from streamhouse.wire.http.rest.problems import Problem

JSON_LINES = "application/x-ndjson"


class VerificationOrder(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`deep`: every object is read, and its content checked."""

    deep: bool = False
    garbage_grace_ms: (
        Annotated[int, Meta(ge=0, le=2**53, description="Objects that nothing refers to are told of once so old")]
        | None
    ) = None


class VerificationProgress(Struct, frozen=True, kw_only=True):
    checked_offsets: int
    offsets: Annotated[int, Meta(description="All that there were at the start")]


class VerificationFinding(Struct, frozen=True, kw_only=True):
    """A note is worth knowing and nothing to worry about."""

    severity: Literal["violation", "note"]
    invariant: Literal["I3", "I7"]
    subject: str
    message: str


class VerificationReport(Struct, frozen=True, kw_only=True):
    """The counts are of all findings, of which only the first were told."""

    partitions: int
    segments: int
    wal_objects: int
    bytes_read: int
    violations: int
    notes: int


class VerificationLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of these: progress again and again, at the end every finding and then the report; or a problem, if it could
    not be done. An answer that ends with neither was cut off."""

    progress: VerificationProgress | None = None
    finding: VerificationFinding | None = None
    report: VerificationReport | None = None
    problem: Problem | None = None
