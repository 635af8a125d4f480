"""Found records as files: a JSON document a line, or a table for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from streamhouse.format.rows import Record
from streamhouse.wire.http.rest.formats import shown_headers
from streamhouse.wire.http.rest.records import DownloadQuery

_UNSEEN = r" \x00-\x08\x0b\x0c\x0e-\x1f\x7f-\xa0\xad\u200b-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff"
"""What a spreadsheet may leave out before it looks what a cell begins with."""
_SIGN = r"[=+\-@\uff1d\uff0b\uff0d\uff20]"
"""What it may take for a formula, if a cell begins with it: also in full width."""
_NUMBER = r"-[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_AT_START = re.compile(rf"[\t\r\n]|[{_UNSEEN}]*{_SIGN}")
_ONLY_NUMBER = re.compile(_NUMBER)
_INSIDE = re.compile(rf'[;\t\r\n](?![{_UNSEEN}]*{_NUMBER}[ ,\]}}]*(?:[;\t\r\n]|$))(?=[{_UNSEEN}"]*{_SIGN})')
"""Where another cell begins for a spreadsheet that separates with semicolons or tabs, and to which quotes that are not
first in a cell are none. Numbers in JSON are left as they are."""
_COLUMNS = ("partition", "offset", "timestamp_ms", "key")
_WHOLE = ("value", "headers")
NDJSON = "application/x-ndjson"
CSV = "text/csv; charset=utf-8"

FieldTexts = Callable[[Record], Sequence[str | None]]


class NdjsonFile:
    media_type = NDJSON

    def __init__(self, query: DownloadQuery, names: Sequence[str], texts: FieldTexts) -> None:
        self._query = query
        self._texts = texts if names else None

    def head(self) -> bytes:
        return b""

    def lines(self, found: Iterable[tuple[int, Record]]) -> bytes:
        return b"".join(self._line(partition, record) for partition, record in found)

    def note(self, kind: str, said: object) -> bytes:
        return _one_line(msgspec.json.encode({kind: said}))

    def cut(self, reason: str, following: str) -> bytes:
        return _one_line(msgspec.json.encode({"cut": reason, "next": following}))

    def _line(self, partition: int, record: Record) -> bytes:
        fields = msgspec.UNSET if self._texts is None else list(self._texts(record))
        return _one_line(msgspec.json.encode(self._query.found(partition, record, fields)))


class CsvFile:
    """With the chosen fields instead of value and headers, if some are chosen."""

    media_type = CSV

    def __init__(self, names: Sequence[str], texts: FieldTexts) -> None:
        self._names = names
        self._texts = texts

    def head(self) -> bytes:
        return _rows([[*_COLUMNS, *(map(cell, self._names) if self._names else _WHOLE)]])

    def lines(self, found: Iterable[tuple[int, Record]]) -> bytes:
        return _rows([self._row(partition, record) for partition, record in found])

    def note(self, kind: str, said: object) -> bytes:
        return _rows([[f"# {kind}: {msgspec.json.encode(said).decode()}"]])

    def cut(self, reason: str, following: str) -> bytes:
        return _rows([[f"# cut: {reason}; go on with next={following}"]])

    def _row(self, partition: int, record: Record) -> list[str]:
        cells = self._texts(record) if self._names else (text_of(record.value), _headers(record))
        known = [str(partition), str(record.offset), str(record.timestamp_ms), cell(text_of(record.key))]
        return [*known, *map(cell, cells)]


def cell(text: str | None) -> str:
    """Where a spreadsheet would run a formula there is an apostrophe before it, as people put one; a negative number is
    none."""
    if not text or _ONLY_NUMBER.fullmatch(text):
        return text or ""
    marked = _INSIDE.sub(r"\g<0>'", text)
    return f"'{marked}" if _AT_START.match(text) else marked


def text_of(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"


def _headers(record: Record) -> str | None:
    return msgspec.json.encode(shown_headers(record.headers)).decode() if record.headers else None


def _rows(rows: Iterable[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def _one_line(message: bytes) -> bytes:
    """JSON as it was stored may have line ends, between its parts and nowhere else."""
    return message.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n"
