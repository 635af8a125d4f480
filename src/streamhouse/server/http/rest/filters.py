"""Which records a reader wants to see."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput
from streamhouse.wire.http.rest.records import FilterQuery

_MISSING = object()
_JSON = msgspec.json.Decoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFilter:
    """`equals` are the values that the field may have: what was asked for as JSON, and as text."""

    key: bytes | None = None
    field: tuple[str, ...] = ()
    equals: tuple[object, ...] = ()
    from_ms: int | None = None
    to_ms: int | None = None

    def wants(self, record: Record) -> bool:
        return (
            (self.key is None or record.key == self.key)
            and (self.from_ms is None or record.timestamp_ms >= self.from_ms)
            and (self.to_ms is None or record.timestamp_ms < self.to_ms)
            and (not self.field or self._has_field(record.value))
        )

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
    )


def _meanings(text: str) -> tuple[object, ...]:
    try:
        return (text, _JSON.decode(text))
    except (ValueError, RecursionError):
        return (text,)


def _field(value: bytes, path: tuple[str, ...]) -> object:
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
