"""Stored batches as rows, as many as one answer may cost: a batch of some hundred bytes can hold millions of headers.

What cannot be given as rows is told, with the offset behind it, and never passed over without a word."""

from __future__ import annotations

from typing import NamedTuple

from streamhouse.format import kernel
from streamhouse.format.batch import BatchHeader, iter_headers
from streamhouse.format.compression import DEFAULT_LIMIT_BYTES, InflatesTooFar
from streamhouse.format.records import section_of, with_utf8_header_keys
from streamhouse.format.rows import Record, records_of
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch, UnreadableRecords

_INT32_MAX, _INT64_MAX = 2**31 - 1, 2**63 - 1


class RowLimits(NamedTuple):
    """Of one answer: bytes without their codec, and records and their headers together. A batch that is larger as it
    is stored may become as large as that."""

    raw_bytes: int
    parts: int


DOOR_LIMITS = RowLimits(raw_bytes=16 * 1024 * 1024, parts=200_000)
"""For a node that reads rows for others."""
CLIENT_LIMITS = RowLimits(raw_bytes=DEFAULT_LIMIT_BYTES, parts=_INT64_MAX)
"""For a process that reads them for itself."""


class RowsRead(NamedTuple):
    """`next_offset` is where to read on."""

    records: list[Record]
    next_offset: int


def read_rows(
    batches: Buffer, start_offset: int, *, max_records: int = _INT64_MAX, limits: RowLimits = DOOR_LIMITS
) -> RowsRead:
    """The records from an offset on, of a run of whole batches. UnreadableRecords if the first of them cannot be given
    as a row; what comes before such a record is given first."""
    rows = _Rows(start_offset, max_records, limits)
    view = memoryview(batches)
    for pos, header in iter_headers(view):
        if header.end_offset > start_offset and not rows.add(view[pos : pos + header.size_bytes], header):
            break
    return RowsRead(rows.records, rows.next_offset)


class _Rows:
    """Rows that grow by a batch at a time, while there is room."""

    def __init__(self, start_offset: int, max_records: int, limits: RowLimits) -> None:
        self.records: list[Record] = []
        self.next_offset = start_offset
        self._start_offset = start_offset
        self._rows_left = max_records
        self._limits = limits
        self._raw_left, self._parts_left = limits

    def add(self, batch: memoryview, header: BatchHeader) -> bool:
        """False if the answer ends here, with this batch or before it."""
        if not self.records:
            self._raw_left = min(max(self._limits.raw_bytes, header.size_bytes), _INT32_MAX)
        decoder = kernel.ColumnDecoder(
            self._start_offset, _INT64_MAX, max_rows=self._rows_left, max_parts=self._parts_left
        )
        try:
            section = section_of(batch, header, self._raw_left)
            if section is not None:
                decoder.add(section)
                self._raw_left -= len(section.records)
        except InflatesTooFar:
            return self._end_before(header, f"takes more than {self._raw_left} bytes when it is decompressed")
        except CorruptBatch as problem:
            return self._end_before(header, f"is damaged, or its producer wrote it wrong: {problem.message}")
        columns = with_utf8_header_keys(decoder.finish())
        self.records += records_of(columns)
        self._rows_left -= columns.count
        self._parts_left -= columns.count + columns.header_count
        if decoder.stopped_at >= 0:
            return self._end_at(decoder.stopped_at)
        self.next_offset = header.end_offset
        return self._rows_left > 0 and self._parts_left > 0 and self._raw_left > 0

    def _end_before(self, header: BatchHeader, problem: str) -> bool:
        if not self.records:
            first, last = header.base_offset, header.end_offset - 1
            raise unreadable(f"the batch of offsets {first} to {last} {problem}", header.end_offset)
        self.next_offset = header.base_offset
        return False

    def _end_at(self, offset: int) -> bool:
        if not self.records:
            raise unreadable(
                f"the record at offset {offset} has more headers than the {self._limits.parts} that are read at once",
                offset + 1,
            )
        self.next_offset = offset
        return False


def unreadable(message: str, next_offset: int) -> UnreadableRecords:
    return UnreadableRecords(
        message,
        hint=f"to pass over it go on at offset {next_offset}; a Kafka consumer gets it",
        next_offset=next_offset,
    )
