"""Columns to records in plain Python, for machines that could not compile `_encode`; both pass one suite."""

from __future__ import annotations

from collections.abc import Iterator

from streamhouse.format.columns import Columns, EncodedRows
from streamhouse.format.varint import append_varint
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import InvalidInput

_INT32_MAX = 2**31 - 1
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


class _Blobs:
    """A column of optional bytes, read by index with every offset checked."""

    def __init__(self, offsets: Buffer, data: Buffer, validity: Buffer | None, count: int) -> None:
        self._offsets = _integers(offsets, "i", count + 1)
        self._data = memoryview(data).cast("B")
        self._validity = validity
        if validity is not None and len(validity) < (count + 7) // 8:
            raise _too_short()

    def __getitem__(self, index: int) -> memoryview | None:
        start, end = self._offsets[index], self._offsets[index + 1]
        if not 0 <= start <= end <= len(self._data):
            raise ValueError
        if self._validity is not None and not self._validity[index >> 3] >> (index & 7) & 1:
            return None
        return self._data[start:end]


def _integers(buf: Buffer, kind: str, count: int) -> memoryview:
    """A buffer as native integers; whatever follows the last whole one is not looked at."""
    view = memoryview(buf).cast("B")
    width = 8 if kind == "q" else 4
    if count < 0 or len(view) < width * count:
        raise _too_short()
    return view[: width * count].cast("q" if kind == "q" else "i")


def _too_short() -> InvalidInput:
    return InvalidInput("a column is shorter than its count says")


class _Table:
    def __init__(self, columns: Columns) -> None:
        count, header_count = columns.count, columns.header_count
        self.offsets = _integers(columns.offsets, "q", count)
        self.timestamps = _integers(columns.timestamps, "q", count)
        self.keys = _Blobs(columns.key_offsets, columns.key_data, columns.key_validity, count)
        self.values = _Blobs(columns.value_offsets, columns.value_data, columns.value_validity, count)
        self._lists = _integers(columns.header_list_offsets, "i", count + 1)
        self._header_count = header_count
        self._header_keys = _Blobs(columns.header_key_offsets, columns.header_key_data, None, header_count)
        self._header_values = _Blobs(
            columns.header_value_offsets, columns.header_value_data, columns.header_value_validity, header_count
        )

    def headers(self, row: int) -> list[tuple[memoryview | None, memoryview | None]]:
        start, end = self._lists[row], self._lists[row + 1]
        if not 0 <= start <= end <= self._header_count:
            raise ValueError
        return [(self._header_keys[index], self._header_values[index]) for index in range(start, end)]


def _append_blob(out: bytearray, value: memoryview | None) -> None:
    if value is None:
        append_varint(out, -1)
    else:
        append_varint(out, len(value))
        out += value


def _record(table: _Table, row: int, timestamp_delta: int, offset_delta: int) -> bytearray:
    body = bytearray(1)
    append_varint(body, timestamp_delta)
    append_varint(body, offset_delta)
    _append_blob(body, table.keys[row])
    _append_blob(body, table.values[row])
    headers = table.headers(row)
    append_varint(body, len(headers))
    for key, value in headers:
        _append_blob(body, key)
        _append_blob(body, value)
    if len(body) > _INT32_MAX:
        raise ValueError
    record = bytearray()
    append_varint(record, len(body))
    return record + body


def _batch_rows(table: _Table, first_row: int, numbered: bool) -> Iterator[tuple[bytearray, int, int]]:
    """Record, offset delta and timestamp of each row for as long as deltas reach from the first."""
    base_timestamp = table.timestamps[first_row]
    last_delta = -1
    for row in range(first_row, len(table.timestamps)):
        delta = row - first_row if numbered else table.offsets[row] - table.offsets[first_row]
        timestamp_delta = table.timestamps[row] - base_timestamp
        if not last_delta < delta <= _INT64_MAX:
            raise ValueError
        if delta > _INT32_MAX or not _INT64_MIN <= timestamp_delta <= _INT64_MAX:
            return
        last_delta = delta
        yield _record(table, row, timestamp_delta, delta), delta, table.timestamps[row]


def encode_rows(columns: Columns, first_row: int, max_bytes: int, numbered: bool) -> EncodedRows:
    """The records of one batch, from `first_row` on: at most `max_bytes` of them, but at least one record.

    `numbered` gives them offsets one after the other, otherwise they keep their own, which must rise.
    """
    table = _Table(columns)
    if not 0 <= first_row < columns.count:
        raise InvalidInput(f"there is no row {first_row} in {columns.count}")
    records = bytearray()
    next_row, last_offset_delta, max_timestamp = first_row, 0, _INT64_MIN
    try:
        for record, delta, timestamp in _batch_rows(table, first_row, numbered):
            if next_row > first_row and len(records) + len(record) > max_bytes:
                break
            records += record
            next_row, last_offset_delta, max_timestamp = next_row + 1, delta, max(max_timestamp, timestamp)
    except ValueError:
        raise InvalidInput(f"the columns do not make a record at row {next_row}") from None
    return EncodedRows(bytes(records), next_row, last_offset_delta, max_timestamp)
