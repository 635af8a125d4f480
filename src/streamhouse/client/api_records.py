"""What users of the client see: records with Python values, where a record went, what topics there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from streamhouse.client.consumer import ConsumedRecord
from streamhouse.client.serde import BadRecord, Serde
from streamhouse.model.errors import InvalidInput

T = TypeVar("T")

Start: TypeAlias = Literal["earliest", "latest"] | datetime
Headers: TypeAlias = Mapping[str, str | bytes | None] | Sequence[tuple[str, str | bytes | None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Generic[T]):
    """One record, its value as the type that was asked for."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: T
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    def header(self, name: str) -> bytes | None:
        """The last of that name, which is the one that counts; None if there is none."""
        return next((value for key, value in reversed(self.headers) if key == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to send, as bytes."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int | None
    timestamp_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Where a record is; the offset is None if an answer was lost, though the record was not."""

    topic: str
    partition: int
    offset: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    name: str
    partition_count: int


def header_bytes(headers: Headers) -> tuple[tuple[str, bytes | None], ...]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return tuple((name, value.encode() if isinstance(value, str) else value) for name, value in pairs)


def timestamp_of(moment: datetime | int | None) -> int | None:
    if moment is None or (isinstance(moment, int) and not isinstance(moment, bool)):
        return moment
    if not isinstance(moment, datetime):
        hint = "milliseconds since 1970, or datetime(…, tzinfo=UTC)"
        raise InvalidInput(f"{moment!r:.100} is not a time", hint=hint)
    if moment.tzinfo is None:
        raise InvalidInput("a time without a time zone", hint="use datetime(…, tzinfo=UTC)")
    return round(moment.timestamp() * 1000)


def read_record(raw: ConsumedRecord, keys: Serde[Any], values: Serde[T]) -> Record[T]:
    try:
        key, value = keys.decode(raw.key), values.decode(raw.value)
    except ValueError as problem:
        raise BadRecord(raw, str(problem)) from problem
    return Record(
        topic=raw.topic,
        partition=raw.partition,
        offset=raw.offset,
        timestamp_ms=raw.timestamp_ms,
        key=key,
        value=value,
        headers=raw.headers,
    )
