"""Requests with many records that are nothing special, which most are, as columns: to make an object of each record,
and another one of what became of it, takes longer than to store them."""

from __future__ import annotations

from itertools import repeat

from msgspec import Raw

from streamhouse.format.column_builder import ColumnBuilder
from streamhouse.format.columns import Columns
from streamhouse.model.errors import InvalidInput
from streamhouse.wire.http.rest.formats import bytes_of
from streamhouse.wire.http.rest.records import ProduceRequest

_NOTHING = (b"", b"null")


def plain_columns(request: ProduceRequest, now_ms: int) -> Columns | None:
    """None if a record has headers or formats of its own, or cannot be stored: then each is looked at by itself."""
    records = request.records
    if (request.key_format, request.value_format) != ("text", "json"):
        return None
    if any(record.headers or record.key_format or record.value_format for record in records):
        return None
    values = [bytes(record.value) for record in records]
    try:
        b"".join(values).decode()  # a JSON value neither begins nor ends in the middle of a character
        keys = [_text(record.key) for record in records]
    except (UnicodeDecodeError, InvalidInput):
        return None
    builder = ColumnBuilder()
    builder.extend(
        offsets=repeat(0, len(records)),
        timestamps_ms=[now_ms if record.timestamp_ms is None else record.timestamp_ms for record in records],
        keys=keys,
        values=[None if value in _NOTHING else value for value in values],
        headers=[()] * len(records),
    )
    return builder.finish()


def _text(given: Raw) -> bytes | None:
    data = bytes(given)
    if data.startswith(b'"') and b"\\" not in data:
        data.decode()
        return data[1:-1]
    return bytes_of(given, "text") if data else None


def stored_run(partition: int, base_offset: int, record_count: int, timestamp_ms: int) -> bytes:
    """The ProduceAnswer of records that were stored one behind the other."""
    before, after = f'{{"partition":{partition},"offset":', f',"timestamp_ms":{timestamp_ms}}}'
    offsets = f"{after},{before}".join(map(str, range(base_offset, base_offset + record_count)))
    return f'{{"records":[{before}{offsets}{after}]}}'.encode()
