"""A file of a node's write-ahead log, read record by record: what was acknowledged, and may not be in a segment yet.

A node that runs writes on at the end, and uses files again that it no longer needs; what is given is whole and checked,
and may be of before or after that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from streamhouse.flume.record import Record
from streamhouse.format.row_reading import CLIENT_LIMITS, read_rows
from streamhouse.format.wal_entry import FILE_HEADER_BYTES, ScanResult, decode_file_header, scan_file
from streamhouse.model.errors import CorruptData, NotFound, StorageUnavailable


class LogRecord(NamedTuple):
    """All partitions of a node share one log: which one, `topic_id` and `partition` say."""

    topic_id: UUID
    partition: int
    record: Record


def read_log(path: str | Path) -> Iterator[LogRecord]:
    """The file's records, as they were appended; CorruptData behind them if what follows is damaged."""
    data, found = _scan(Path(path))
    view = memoryview(data)
    for entry in found.entries:
        rows = read_rows(view[entry.start : entry.end], entry.base_offset, limits=CLIENT_LIMITS)
        while rows.records:
            for row in rows.records:
                record = Record(offset=row.offset, payload=row.value or b"")
                yield LogRecord(entry.topic_id, entry.partition, record)
            rows = read_rows(view[entry.start : entry.end], rows.next_offset, limits=CLIENT_LIMITS)
    if found.damaged:
        raise CorruptData(f"{Path(path).name} is damaged at byte {found.end}, and later entries were synced")


def _scan(path: Path) -> tuple[bytes, ScanResult]:
    """What is written while the file is read may look like damage, at another place each time."""
    before = -1
    while True:
        data = _read(path)
        header = data[:FILE_HEADER_BYTES]
        if len(header) < FILE_HEADER_BYTES or header == bytes(FILE_HEADER_BYTES):
            return data, ScanResult([], 0, 0, False)  # made, and not used yet
        found = scan_file(data, decode_file_header(header))
        if not found.damaged or found.end == before:
            return data, found
        before = found.end


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except OSError as problem:
        raise StorageUnavailable(f"cannot read {str(path)!r}: {problem.strerror}") from problem
