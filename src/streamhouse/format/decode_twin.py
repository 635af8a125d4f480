"""Records to columns in plain Python, for machines that could not compile `_decode`; both pass one suite."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamhouse.format.column_builder import ColumnBuilder
from streamhouse.format.columns import Columns, Section
from streamhouse.model.errors import CorruptBatch

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT_BYTES, _LONG_BYTES = 5, 10


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
_Row = tuple[int, int, memoryview | None, memoryview | None, list[_Header]]


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
        if header_count < 0:
            raise _NotValid
        headers: list[_Header] = []
        for _ in range(header_count):
            headers.append((record.blob(), record.optional_blob()))
        if record.at != record.end:
            raise _NotValid
        yield offset, timestamp, key, value, headers
    if reader.at != reader.end:
        raise _NotValid


class ColumnDecoder:
    """Columns that grow by a section at a time: the records with start_offset <= offset < end_offset, all checked.

    A record must be exactly as long as it says, a section must be exactly its records, and offsets must rise and stay
    within what the batch's header says; CorruptBatch otherwise. With `keys_only`, values are empty where they are not
    null and headers are left out, but what is left out is checked as well.
    """

    def __init__(self, start_offset: int, end_offset: int, *, keys_only: bool = False) -> None:
        self._start_offset = start_offset
        self._end_offset = end_offset
        self._keys_only = keys_only
        self._builder = ColumnBuilder()

    def add(self, section: Section) -> None:
        try:
            for offset, timestamp_ms, key, value, headers in _rows(section):
                if not self._start_offset <= offset < self._end_offset:
                    continue
                if self._keys_only:
                    self._builder.append(offset, timestamp_ms, key, None if value is None else b"", ())
                else:
                    self._builder.append(offset, timestamp_ms, key, value, headers)
        except _NotValid:
            raise CorruptBatch(f"the records of the batch at offset {section.base_offset} are not valid") from None

    def finish(self) -> Columns:
        """What has been added since the last time."""
        columns = self._builder.finish()
        self._builder = ColumnBuilder()
        return columns


def decode_sections(sections: Iterable[Section], start_offset: int, end_offset: int) -> Columns:
    """The records of all sections, as ColumnDecoder has them."""
    decoder = ColumnDecoder(start_offset, end_offset)
    for section in sections:
        decoder.add(section)
    return decoder.finish()
