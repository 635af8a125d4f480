"""Arrow arrays as columns: what is encoded from them is what was in them, slices and nulls included."""

from __future__ import annotations

import pyarrow as pa
import pytest

from streamhouse.format.arrow import HEADERS, from_arrow, to_arrow
from streamhouse.format.records import Record, decode_columns, decode_records, encode_columns
from streamhouse.model.errors import InvalidInput

ROWS = [
    Record(0, 5, b"k", b"v", (("a", b"1"), ("é", None))),
    Record(1, -1, None, None),
    Record(2, 0, b"", b"", (("", b""),)),
    Record(3, 2**40, "ключ".encode(), b"x" * 100),
    Record(4, 1, b"last", None, (("h", b"h"),)),
]
VALUES = pa.array([row.value for row in ROWS], pa.binary())
KEYS = pa.array([row.key for row in ROWS], pa.binary())
TIMES = pa.array([row.timestamp_ms for row in ROWS], pa.int64())
LISTS = pa.array([[{"key": key, "value": value} for key, value in row.headers] or None for row in ROWS], HEADERS)


def numbered(rows: list[Record]) -> list[Record]:
    return [row._replace(offset=number) for number, row in enumerate(rows)]


@pytest.mark.parametrize("rows", [slice(0, 5), slice(1, 5), slice(2, 4), slice(3, 3)])
def test_slices_are_encoded_as_what_they_hold(rows: slice) -> None:
    columns = from_arrow(VALUES[rows], TIMES[rows], keys=KEYS[rows], headers=LISTS[rows])
    assert decode_records(b"".join(encode_columns(columns))) == numbered(ROWS[rows])


def test_some_rows_can_be_encoded_alone() -> None:
    columns = from_arrow(VALUES, TIMES, keys=KEYS, headers=LISTS)
    for start in range(5):
        for stop in range(start, 6):
            batches = encode_columns(columns, rows=range(start, min(stop, 5)), base_offset=0)
            assert decode_records(b"".join(batches)) == numbered(ROWS[start : min(stop, 5)])


def test_keys_and_headers_can_be_left_out() -> None:
    records = decode_records(b"".join(encode_columns(from_arrow(VALUES, TIMES))))
    assert records == [row._replace(key=None, headers=()) for row in ROWS]


def test_texts_are_their_bytes() -> None:
    columns = from_arrow(pa.array(["é", None]), TIMES[:2], keys=pa.array([None, "k"]))
    assert [(record.key, record.value) for record in decode_records(b"".join(encode_columns(columns)))] == [
        (None, "é".encode()),
        (b"k", None),
    ]


def test_the_values_are_not_copied() -> None:
    data = VALUES.buffers()[2]
    assert data is not None
    assert pa.py_buffer(from_arrow(VALUES, TIMES).value_data).address == data.address


def test_what_was_decoded_to_arrow_comes_back() -> None:
    encoded = b"".join(encode_columns(from_arrow(VALUES, TIMES, keys=KEYS, headers=LISTS)))
    table = to_arrow(decode_columns(encoded))
    milliseconds = table.column("timestamp").cast(pa.timestamp("ms", tz="UTC")).cast(pa.int64())
    again = from_arrow(table.column("value"), milliseconds, keys=table.column("key"), headers=table.column("headers"))
    assert b"".join(encode_columns(again)) == encoded


@pytest.mark.parametrize("header", [None, {"key": None, "value": b"v"}])
def test_a_header_without_a_key_is_refused(header: object) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    with pytest.raises(InvalidInput, match="header"):
        from_arrow(pa.array([b"v"]), TIMES[:1], headers=pa.array([[header]], kind))


@pytest.mark.parametrize("values", [pa.array([1]), pa.array([b"v"], pa.large_binary())])
def test_other_types_are_refused(values: pa.Array) -> None:
    with pytest.raises(InvalidInput, match="is not binary or text"):
        from_arrow(values, TIMES[:1])
