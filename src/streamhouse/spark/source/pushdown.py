"""Filters of a query that spare reading: which topics, partitions, offsets and times can have rows at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
)

Value = TypeVar("Value")

_NEVER_NULL = ("topic", "partition", "offset", "timestamp", "timestampType")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PER_MILLISECOND = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanFilter:
    """What may be left out; None where nothing may. Offsets are [start, end), times in milliseconds, both included."""

    topics: frozenset[str] | None = None
    partitions: frozenset[int] | None = None
    start: int | None = None
    end: int | None = None
    min_timestamp_ms: int | None = None
    max_timestamp_ms: int | None = None

    def keeps(self, topic: str, partition: int) -> bool:
        return (self.topics is None or topic in self.topics) and (
            self.partitions is None or partition in self.partitions
        )

    def cut(self, start: int, end: int) -> tuple[int, int]:
        start = start if self.start is None else max(start, self.start)
        return start, max(start, end if self.end is None else min(end, self.end))


def push_down(filters: Iterable[Filter]) -> tuple[ScanFilter, list[Filter]]:
    """All that can be used of filters that must all hold, and those that Spark must still look at."""
    pushed, left = ScanFilter(), []
    for each in filters:
        narrowed = _narrow(pushed, each)
        pushed = pushed if narrowed is None else narrowed
        if narrowed is None or not _is_exact(each):
            left.append(each)
    return pushed, left


def _is_exact(used: Filter) -> bool:
    """Whether a filter that was used leaves nothing for Spark to do. Blocks are left out by time, single records are
    not; and of a list of offsets only the ends are used."""
    match _column(used):
        case "timestamp":
            return isinstance(used, IsNotNull)
        case "offset":
            return not isinstance(used, In)
    return True


def _narrow(known: ScanFilter, added: Filter) -> ScanFilter | None:
    """None if the filter says nothing that can be used."""
    column = _column(added)
    if isinstance(added, IsNotNull):
        return known if column in _NEVER_NULL else None
    match column:
        case "topic":
            topics = _values(added, str)
            return None if topics is None else replace(known, topics=_both(known.topics, topics))
        case "partition":
            partitions = _values(added, int)
            return None if partitions is None else replace(known, partitions=_both(known.partitions, partitions))
        case "offset":
            lowest, highest = _bounds(added)
            end = None if highest is None else highest + 1
            narrowed = replace(known, start=_later(known.start, lowest), end=_earlier(known.end, end))
        case "timestamp":
            lowest, highest = (None if us is None else us // _PER_MILLISECOND for us in _bounds(added))
            narrowed = replace(
                known,
                min_timestamp_ms=_later(known.min_timestamp_ms, lowest),
                max_timestamp_ms=_earlier(known.max_timestamp_ms, highest),
            )
        case _:
            return None
    return None if lowest is None and highest is None else narrowed


def _column(used: Filter) -> str | None:
    attribute: tuple[str, ...] = getattr(used, "attribute", ())
    return attribute[0] if len(attribute) == 1 else None


def _values(used: Filter, kind: type[Value]) -> frozenset[Value] | None:
    """What the column must be one of; a null matches nothing."""
    match used:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            values: tuple[object, ...] = (value,)
        case In(value=listed):
            values = tuple(value for value in listed if value is not None)
        case _:
            return None
    found = frozenset(value for value in values if isinstance(value, kind))
    return found if len(found) == len(frozenset(values)) else None


def _bounds(used: Filter) -> tuple[int | None, int | None]:
    """The lowest and the highest number that the column can be, as far as the filter tells."""
    match used:
        case EqualTo(value=value) | EqualNullSafe(value=value):
            return _number(value), _number(value)
        case GreaterThan(value=value):
            lowest = _number(value)
            return None if lowest is None else lowest + 1, None
        case GreaterThanOrEqual(value=value):
            return _number(value), None
        case LessThan(value=value):
            highest = _number(value)
            return None, None if highest is None else highest - 1
        case LessThanOrEqual(value=value):
            return None, _number(value)
        case In(value=listed):
            numbers = [_number(value) for value in listed if value is not None]
            known = [number for number in numbers if number is not None]
            return (min(known), max(known)) if known and len(known) == len(numbers) else (None, None)
    return None, None


def _number(value: object) -> int | None:
    """Times are microseconds, as fine as Spark's are; one without a zone is not a time."""
    if isinstance(value, datetime):
        return None if value.tzinfo is None else (value - _EPOCH) // _MICROSECOND
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _both(known: frozenset[Value] | None, added: frozenset[Value]) -> frozenset[Value]:
    return added if known is None else known & added


def _later(known: int | None, added: int | None) -> int | None:
    return added if known is None else known if added is None else max(known, added)


def _earlier(known: int | None, added: int | None) -> int | None:
    return added if known is None else known if added is None else min(known, added)
