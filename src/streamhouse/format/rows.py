"""Records as rows: what REST, the console and the command line show, one at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from streamhouse.format.column_builder import ColumnBuilder
from streamhouse.format.columns import Columns
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import InvalidInput


class Record(NamedTuple):
    """One record; a header's key is text, and key, value and header values may be null."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def records_of(columns: Columns) -> list[Record]:
    """The rows of the columns."""
    header_keys = _blobs(columns.header_key_offsets, columns.header_key_data, None)
    header_values = _blobs(columns.header_value_offsets, columns.header_value_data, columns.header_value_validity)
    headers = [(str(key or b"", "utf-8"), value) for key, value in zip(header_keys, header_values, strict=True)]
    return [
        Record(offset, timestamp_ms, key, value, tuple(headers[start:end]))
        for offset, timestamp_ms, key, value, (start, end) in zip(
            memoryview(columns.offsets).cast("B").cast("q"),
            memoryview(columns.timestamps).cast("B").cast("q"),
            _blobs(columns.key_offsets, columns.key_data, columns.key_validity),
            _blobs(columns.value_offsets, columns.value_data, columns.value_validity),
            pairwise(memoryview(columns.header_list_offsets).cast("B").cast("i")),
            strict=True,
        )
    ]


def _blobs(offsets: Buffer, data: Buffer, validity: Buffer | None) -> Iterator[bytes | None]:
    for index, (start, end) in enumerate(pairwise(memoryview(offsets).cast("B").cast("i"))):
        valid = validity is None or validity[index >> 3] >> (index & 7) & 1
        yield bytes(data[start:end]) if valid else None


def columns_of(records: Iterable[Record]) -> Columns:
    """The columns of the rows."""
    builder = ColumnBuilder()
    try:
        if rows := list(records):
            offsets, timestamps_ms, keys, values, headers = zip(*rows, strict=True)
            encoded = [[(key.encode("utf-8"), value) for key, value in several] for several in headers]
            builder.extend(offsets, timestamps_ms, keys, values, encoded)
    except UnicodeEncodeError:
        raise InvalidInput("a header's key is not valid text") from None
    except OverflowError:
        raise InvalidInput("an offset or a timestamp does not fit in 64 bits") from None
    return builder.finish()
