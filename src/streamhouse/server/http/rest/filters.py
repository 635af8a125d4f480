"""Which records a reader wants to see."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from streamhouse.core.search.conditions import Condition, reads_json
from streamhouse.core.search.fields import Row, is_too_long
from streamhouse.core.search.language import condition_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput
from streamhouse.wire.http.rest.records import FilterQuery

_MISSING = object()
_JSON = msgspec.json.Decoder()
_LITTLE_BYTES = 64 * 1024
"""So much is looked at on the event loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """`equals` are the values that the field may have: what was asked for as JSON, and as text. All of `contains` must
    be somewhere in the record."""

    key: bytes | None = None
    field: tuple[str, ...] = ()
    equals: tuple[object, ...] = ()
    from_ms: int | None = None
    to_ms: int | None = None
    contains: tuple[bytes, ...] = ()
    where: Condition | None = None

    async def of(self, records: Sequence[Record]) -> list[Record]:
        """Those that are wanted; on a thread if much has to be read for that."""
        if not (self.field or self.contains or self.where) or _is_little(records):
            return self._of(records)
        return await asyncio.to_thread(self._of, records)

    def count_too_long(self, records: Sequence[Record]) -> int:
        """Those of which a field was asked for, and which are too long for that."""
        if not (self.field or (self.where and reads_json(self.where))):
            return 0
        return sum(1 for record in records if is_too_long(record.key) or is_too_long(record.value))

    def _of(self, records: Sequence[Record]) -> list[Record]:
        return [record for record in records if self.wants(record)]

    def wants(self, record: Record) -> bool:
        return (
            (self.key is None or record.key == self.key)
            and (self.from_ms is None or record.timestamp_ms >= self.from_ms)
            and (self.to_ms is None or record.timestamp_ms < self.to_ms)
            and (not self.contains or self._has_parts(record))
            and (not self.field or self._has_field(record.value))
            and (self.where is None or self.where.holds(Row(record)))
        )

    def _has_parts(self, record: Record) -> bool:
        places = [record.key, record.value]
        for name, value in record.headers:
            places += (name.encode(), value)
        return all(any(place is not None and part in place for place in places) for part in self.contains)

    def _has_field(self, value: bytes | None) -> bool:
        found = _field(value or b"", self.field)
        # True is 1 in Python, but not in JSON.
        return any(found == wanted and isinstance(found, bool) == isinstance(wanted, bool) for wanted in self.equals)


def filter_of(query: FilterQuery, *, from_ms: int | None = None, to_ms: int | None = None) -> RecordFilter:
    if (query.field is None) != (query.equals is None):
        raise InvalidInput("field and equals go together", hint="as in field=customer.id&equals=7")
    return RecordFilter(
        key=None if query.key is None else query.key.encode(),
        field=() if query.field is None else tuple(query.field.split(".")),
        equals=() if query.equals is None else _meanings(query.equals),
        from_ms=from_ms,
        to_ms=to_ms,
        contains=tuple(_parts(query)),
        where=None if query.where is None else condition_of(query.where),
    )


def _is_little(records: Sequence[Record]) -> bool:
    left_bytes = _LITTLE_BYTES
    for record in records:
        left_bytes -= 100 + len(record.key or b"") + len(record.value or b"") + 100 * len(record.headers)
        if left_bytes < 0:
            return False
    return True


def _parts(query: FilterQuery) -> Iterator[bytes]:
    if query.contains is not None:
        yield query.contains.encode()
    if query.contains_hex is not None:
        yield bytes.fromhex(query.contains_hex)


def _meanings(text: str) -> tuple[object, ...]:
    try:
        return (text, _JSON.decode(text))
    except (ValueError, RecursionError):
        return (text,)


def _field(value: bytes, path: tuple[str, ...]) -> object:
    if is_too_long(value):
        return _MISSING
    try:
        found = _JSON.decode(value)
    except (ValueError, RecursionError):
        return _MISSING
    for name in path:
        if isinstance(found, dict) and name in found:
            found = found[name]
        elif (
            isinstance(found, list) and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(found)
        ):
            found = found[int(name)]
        else:
            return _MISSING
    return found
