"""Records to columns in plain Python, for machines that could not compile `_decode`; both pass one suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamhouse.format.column_builder import ColumnBuilder
from streamhouse.format.columns import Columns, Section
from streamhouse.model.errors import CorruptBatch

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT_BYTES, _LONG_BYTES = 5, 10
_MIN_RECORD_BYTES = 7
_MIN_HEADER_BYTES = 2
_NO_TIMESTAMP = -1


class _NotValid(Exception):
    """A record that promises more than is there, or whose parts do not add up."""


class _Reader:
    """A position in a section that never goes past `end`."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: memoryview, at: int, end: int) -> None:
        self.data = data
        self.at = at
        self.end = end

    def _zigzag(self, max_bytes: int, max_bits: int) -> int:
        raw = 0
        for index in range(max_bytes):
            if self.at >= self.end:
                break
            byte = self.data[self.at]
            self.at += 1
            raw |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                if raw >> max_bits:
                    break
                return raw >> 1 ^ -(raw & 1)
        raise _NotValid

    def int32(self) -> int:
        return self._zigzag(_INT_BYTES, 32)

    def int64(self) -> int:
        return self._zigzag(_LONG_BYTES, 64)

    def blob(self) -> memoryview:
        size = self.int32()
        return self.data[self.skip(size) : self.at]

    def optional_blob(self) -> memoryview | None:
        size = self.int32()
        return None if size == -1 else self.data[self.skip(size) : self.at]

    def skip(self, size: int) -> int:
        """Step over `size` bytes; gives where they start."""
        start = self.at
        if not 0 <= size <= self.end - start:
            raise _NotValid
        self.at = start + size
        return start


_Header = tuple[memoryview, memoryview | None]
_Row = tuple[int, int, memoryview | None, memoryview | None, int, _Reader]
"""Offset, timestamp, key, value, and the headers: their number, and where they are to be read before the next row."""


def _headers(count: int, record: _Reader) -> list[_Header]:
    return [(record.blob(), record.optional_blob()) for _ in range(count)]


def _rows(section: Section) -> Iterator[_Row]:
    data = memoryview(section.records)
    reader = _Reader(data, 0, len(data))
    last_delta = -1
    for _ in range(section.record_count):
        size = reader.int32()
        record = _Reader(data, reader.skip(size), reader.at)
        record.skip(1)
        timestamp = section.base_timestamp_ms + record.int64()
        delta = record.int32()
        if not last_delta < delta <= section.last_offset_delta:
            raise _NotValid
        last_delta = delta
        offset = section.base_offset + delta
        if section.append_timestamp_ms is not None:
            timestamp = section.append_timestamp_ms
        if offset > _INT64_MAX or not _INT64_MIN <= timestamp <= _INT64_MAX:
            raise _NotValid
        key = record.optional_blob()
        value = record.optional_blob()
        header_count = record.int32()
        if not 0 <= header_count <= (record.end - record.at) // _MIN_HEADER_BYTES:
            raise _NotValid
        yield offset, timestamp, key, value, header_count, record
        if record.at != record.end:
            raise _NotValid
    if reader.at != reader.end:
        raise _NotValid


class ColumnDecoder:
    """Columns that grow by a section at a time: the records with start_offset <= offset < end_offset, all checked.

    A record must be exactly as long as it says, a section must be exactly its records, and offsets must rise and stay
    within what the batch's header says; CorruptBatch otherwise. With `keys_only`, values are empty where they are not
    null and headers are left out, but what is left out is checked as well. Of a section that is not valid nothing
    is taken.

    `max_rows` records are taken, and `max_parts` of records and their headers together. `stopped_at` is the offset of
    the first record that was left out for that, with all behind it, unseen; -1 if there is none.
    """

    def __init__(
        self,
        start_offset: int,
        end_offset: int,
        *,
        keys_only: bool = False,
        max_rows: int = _INT64_MAX,
        max_parts: int = _INT64_MAX,
    ) -> None:
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._keys_only = keys_only
        self._max_rows = max_rows
        self._max_parts = max_parts
        self._row_count = 0
        self._header_count = 0
        self.stopped_at = -1
        self._builder = ColumnBuilder()

    def add(self, section: Section) -> None:
        try:
            self._add(section)
        except _NotValid:
            raise _not_valid(section) from None

    def _add(self, section: Section) -> None:
        if section.record_count > len(section.records) // _MIN_RECORD_BYTES:
            raise _NotValid
        row_count, header_count = self._row_count, self._header_count
        rows: list[tuple[int, int, memoryview | None, memoryview | None, list[_Header]]] = []
        for offset, timestamp_ms, key, value, its_headers, record in _rows(section):
            is_wanted = self._start_offset <= offset < self._end_offset
            taken_headers = 0 if self._keys_only else its_headers
            if is_wanted and (
                row_count >= self._max_rows or row_count + header_count + 1 + taken_headers > self._max_parts
            ):
                self.stopped_at = offset
                break
            headers = _headers(its_headers, record)
            if not is_wanted:
                continue
            if self._keys_only:
                value, headers = (None if value is None else memoryview(b"")), []
            rows.append((offset, timestamp_ms, key, value, headers))
            row_count += 1
            header_count += taken_headers
        for row in rows:
            self._builder.append(*row)
        self._row_count, self._header_count = row_count, header_count

    def finish(self) -> Columns:
        """What has been added since the last time."""
        columns = self._builder.finish()
        self._builder = ColumnBuilder()
        self._row_count = self._header_count = 0
        return columns


def decode_sections(sections: Iterable[Section], start_offset: int, end_offset: int) -> Columns:
    """The records of all sections, as ColumnDecoder has them."""
    decoder = ColumnDecoder(start_offset, end_offset)
    for section in sections:
        decoder.add(section)
    return decoder.finish()


def survey_times(section: Section, start_offset: int, from_ms: int) -> tuple[tuple[int, int] | None, int]:
    """(offset, timestamp) of the first record from an offset on that is not before a time, and the largest timestamp
    from that offset on, which is the smallest number there is if there are no records."""
    first: tuple[int, int] | None = None
    max_timestamp_ms = _INT64_MIN
    try:
        for offset, timestamp_ms, _, _, header_count, record in _rows(section):
            _headers(header_count, record)
            if offset < start_offset:
                continue
            if first is None and timestamp_ms >= from_ms:
                first = (offset, timestamp_ms)
            max_timestamp_ms = max(max_timestamp_ms, timestamp_ms)
    except _NotValid:
        raise _not_valid(section) from None
    return first, max_timestamp_ms


def refused_records(
    section: Section, needs_key: bool, oldest_ms: int, newest_ms: int, limit: int
) -> list[tuple[int, int | None]]:
    """The first records that a topic does not take, as (index in the batch, its timestamp if that is why, or None if it
    has no key); all records are checked if there are none. A record may say that it has no time, -1."""
    refused: list[tuple[int, int | None]] = []
    try:
        for index, (_, timestamp_ms, key, _, header_count, record) in enumerate(_rows(section)):
            _headers(header_count, record)
            if record.at != record.end:
                raise _NotValid
            if needs_key and key is None:
                refused.append((index, None))
            elif timestamp_ms != _NO_TIMESTAMP and not oldest_ms <= timestamp_ms <= newest_ms:
                refused.append((index, timestamp_ms))
            if len(refused) == limit:
                break
    except _NotValid:
        raise _not_valid(section) from None
    return refused


def _not_valid(section: Section) -> CorruptBatch:
    return CorruptBatch(f"the records of the batch at offset {section.base_offset} are not valid")
