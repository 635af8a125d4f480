"""Columns as Arrow arrays: the same memory, Spark's types."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from streamhouse.format.arrow import SCHEMA, to_arrow
from streamhouse.format.records import Record, columns_of, decode_columns, encode_records

RECORDS = [
    Record(0, 1_500, b"k", b"v", (("a", b"1"), ("é", None))),
    Record(1, -1, None, None),
    Record(2, 0, b"", b"", (("", b""),)),
]


def test_every_column_arrives_with_its_nulls() -> None:
    table = to_arrow(decode_columns(encode_records(RECORDS)))
    table.validate(full=True)
    assert table.schema == SCHEMA
    assert table.to_pydict() == {
        "offset": [0, 1, 2],
        "timestamp": [
            datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
            datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
            datetime(1970, 1, 1, tzinfo=UTC),
        ],
        "key": [b"k", None, b""],
        "value": [b"v", None, b""],
        "headers": [[{"key": "a", "value": b"1"}, {"key": "é", "value": None}], [], [{"key": "", "value": b""}]],
    }


def test_no_records_are_an_empty_table() -> None:
    table = to_arrow(decode_columns(b""))
    table.validate(full=True)
    assert table.num_rows == 0


def test_the_values_are_not_copied() -> None:
    columns = decode_columns(encode_records([Record(0, 0, None, b"v" * 1_000)]))
    data = to_arrow(columns).column("value").buffers()[2]
    assert data is not None
    assert data.address == pa.py_buffer(columns.value_data).address


def test_timestamps_beyond_microseconds_become_the_nearest_that_exist() -> None:
    table = to_arrow(
        columns_of([Record(0, 2**62, None, None), Record(1, -(2**62), None, None), Record(2, 7, None, None)])
    )
    assert table.column("timestamp").cast(pa.int64()).to_pylist() == [
        (2**63 - 1) // 1000 * 1000,
        -((2**63 - 1) // 1000 * 1000),
        7_000,
    ]
