"""The REST API's messages about records."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from streamhouse.format.rows import Record
from streamhouse.model.errors import UnreadableRecords
from streamhouse.wire.http.rest.formats import Format, Header, Headers, ShownAs, shown, shown_headers
from streamhouse.wire.http.rest.problems import Problem

MAX_RECORDS = 10_000
MAX_MESSAGES = 500
MAX_DOWNLOADED = 100_000
MAX_WAIT_MS = 30_000
MAX_BYTES = 16 * 2**20

Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Partition = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Time = Annotated[int, Meta(ge=0, le=2**53)]
FieldPath = Annotated[str, Meta(min_length=1, max_length=300)]
Part = Annotated[str, Meta(min_length=1, max_length=1_000)]
HexBytes = Annotated[str, Meta(pattern="^([0-9a-fA-F]{2}){1,500}$")]
PartitionList = Annotated[str, Meta(pattern="^[0-9]{1,10}(,[0-9]{1,10})*$")]


class ProduceRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One record to store. Without a partition its key chooses one; without either, records of one request stay
    together."""

    key: Annotated[Raw, Meta(description="null if left out", examples=["customer-7"])] = msgspec.field(
        default_factory=Raw
    )
    value: Annotated[Raw, Meta(description="null if left out", examples=[{"amount": 3}])] = msgspec.field(
        default_factory=Raw
    )
    headers: Annotated[Headers, Meta(description="By name, or a list where names repeat or values are bytes")] = (
        msgspec.field(default_factory=list)
    )
    partition: Partition | None = None
    timestamp_ms: Annotated[Time | None, Meta(description="Since 1970; now if left out")] = None
    key_format: Annotated[Format | None, Meta(description="Instead of the request's")] = None
    value_format: Annotated[Format | None, Meta(description="Instead of the request's")] = None


class ProduceRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    records: Annotated[list[ProduceRecord], Meta(min_length=1, max_length=MAX_RECORDS)]
    key_format: Annotated[Format, Meta(description="What keys are")] = "text"
    value_format: Annotated[Format, Meta(description="What values are")] = "json"


class ProduceResult(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one record: where it is, or why it was refused."""

    partition: int | None = None
    offset: int | None = None
    timestamp_ms: int | None = None
    error: Problem | None = None


class ProduceAnswer(Struct, frozen=True, kw_only=True):
    """In the order of the request."""

    records: list[ProduceResult]


class RecordAnswer(Struct, frozen=True, kw_only=True):
    """A stored record. `key_format` and `value_format` say how they are shown; null where there is nothing."""

    partition: int
    offset: int
    timestamp_ms: int
    key: Raw
    key_format: Format | None
    value: Raw
    value_format: Format | None
    headers: list[Header]


class FoundRecord(RecordAnswer, frozen=True, kw_only=True):
    """One that was looked for, perhaps with some of its parts."""

    fields: Annotated[
        list[str | None] | UnsetType,
        Meta(description="Those that were asked for, in their order, each cut after 500 characters"),
    ] = UNSET


class RecordsAnswer(Struct, frozen=True, kw_only=True):
    """`next_offset` is where to read on, also if there are no records yet."""

    records: list[RecordAnswer]
    next_offset: int
    log_start_offset: int
    high_watermark: int


class Unreadable(Struct, frozen=True, kw_only=True):
    """What was passed over, up to `next_offset`: it is stored, and a Kafka consumer gets it, but it cannot be given as
    rows."""

    partition: int
    next_offset: int | None
    problem: str

    @classmethod
    def of(cls, partition: int, problem: UnreadableRecords) -> Unreadable:
        return cls(partition=partition, next_offset=problem.next_offset, problem=problem.message)


class MessagesAnswer(Struct, frozen=True, kw_only=True):
    """`next` is where to go on, null at the end; there may be more even if few or none were found in what was looked
    at, which `scanned_records` counts."""

    records: list[FoundRecord]
    scanned_records: int
    next: str | None
    unreadable: list[Unreadable] = []
    too_long: Annotated[
        int, Meta(description="How many of them are too long for the fields that were asked for to be looked at")
    ] = 0


class FollowedRecord(Struct, frozen=True, kw_only=True):
    """One message of the WebSocket. `positions` is where to go on after it."""

    positions: str
    record: RecordAnswer


class FollowedUnreadable(Struct, frozen=True, kw_only=True):
    """One that says what was passed over."""

    positions: str
    unreadable: Unreadable


class ShowQuery(Struct, frozen=True, kw_only=True):
    key_format: Annotated[ShownAs, Meta(description="How to show keys; base64 where they are not that")] = "text"
    value_format: Annotated[
        ShownAs, Meta(description="How to show values: auto is JSON if it is that, else text, else base64")
    ] = "auto"

    def show(self, partition: int, record: Record) -> RecordAnswer:
        key, key_format = shown(record.key, self.key_format)
        value, value_format = shown(record.value, self.value_format)
        return RecordAnswer(
            partition=partition,
            offset=record.offset,
            timestamp_ms=record.timestamp_ms,
            key=key,
            key_format=key_format,
            value=value,
            value_format=value_format,
            headers=shown_headers(record.headers),
        )


class RecordsQuery(ShowQuery, frozen=True, kw_only=True):
    offset: Annotated[Offset | None, Meta(description="Read from here; from the oldest record if left out")] = None
    timestamp_ms: Annotated[
        Time | None, Meta(description="Instead of an offset: from the first record at or after this time")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=MAX_RECORDS, description="How many records at most")] = 500
    max_bytes: Annotated[int, Meta(ge=1, le=MAX_BYTES, description="How much of them, about; at least one")] = 2**20
    max_wait_ms: Annotated[int, Meta(ge=0, le=MAX_WAIT_MS, description="How long to wait for the first")] = 0


class FilterQuery(ShowQuery, frozen=True, kw_only=True):
    key: Annotated[str | None, Meta(description="Only records with this key")] = None
    field: Annotated[
        FieldPath | None, Meta(description="With `equals`: only values whose field, as a.b.0.c, equals that")
    ] = None
    equals: Annotated[str | None, Meta(description="JSON or text")] = None
    contains: Annotated[
        Part | None, Meta(description="Only records with this text in key, value or a header, letter by letter")
    ] = None
    contains_hex: Annotated[HexBytes | None, Meta(description="Only those with these bytes there, as 00ff17")] = None
    where: Annotated[
        str | None,
        Meta(
            description="Only records of which this condition holds",
            examples=['value.amount > 3 and key == "alice"'],
        ),
    ] = None


class SearchQuery(FilterQuery, frozen=True, kw_only=True):
    partition: Annotated[Partition | None, Meta(description="Only of this one")] = None
    from_ms: Annotated[Time | None, Meta(description="Not older than this time")] = None
    to_ms: Annotated[Time | None, Meta(description="Older than this time")] = None
    order: Annotated[Literal["newest", "oldest"], Meta(description="Which come first")] = "newest"
    fields: Annotated[
        Annotated[str, Meta(max_length=2_000)] | None,
        Meta(
            description="Up to 20 parts of records beside them, with commas",
            examples=["value.customer.id,headers.trace"],
        ),
    ] = None
    next: Annotated[str | None, Meta(description="Go on where an answer to the same query ended")] = None

    def found(self, partition: int, record: Record, fields: list[str | None] | UnsetType) -> FoundRecord:
        return FoundRecord(**msgspec.structs.asdict(self.show(partition, record)), fields=fields)


class MessagesQuery(SearchQuery, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=MAX_MESSAGES, description="How many at most")] = 50


class DownloadQuery(SearchQuery, frozen=True, kw_only=True):
    format: Annotated[
        Literal["ndjson", "csv"], Meta(description="A record a line as JSON, or a table for spreadsheets")
    ] = "ndjson"
    limit: Annotated[int, Meta(ge=1, le=MAX_DOWNLOADED, description="How many at most")] = MAX_DOWNLOADED


class FollowQuery(FilterQuery, frozen=True, kw_only=True):
    partitions: Annotated[PartitionList | None, Meta(description="Only these, as 0,3,7")] = None
    start: Annotated[Literal["latest", "earliest"], Meta(description="Where to begin")] = msgspec.field(
        default="latest", name="from"
    )
    from_ms: Annotated[Time | None, Meta(description="Begin at this time instead")] = None
    positions: Annotated[
        str | None, Meta(description="Begin here instead: the last event's id, as the Last-Event-ID header says it too")
    ] = None
