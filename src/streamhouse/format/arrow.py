"""Columns as Arrow arrays, without copying; the only module of the format layer that needs pyarrow."""

from __future__ import annotations

from array import array
from typing import TypeAlias

import pyarrow as pa

from streamhouse.format.columns import Columns
from streamhouse.model.buffer import Buffer

ArrowArray: TypeAlias = "pa.Array[pa.Scalar[pa.DataType]]"

# Spark's timestamps are microseconds in UTC.
TIMESTAMP = pa.timestamp("us", tz="UTC")
HEADER = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
HEADERS = pa.list_(pa.field("element", HEADER, nullable=False))

_FIELDS: tuple[pa.Field[pa.DataType], ...] = (
    pa.field("offset", pa.int64(), nullable=False),
    pa.field("timestamp", TIMESTAMP, nullable=False),
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("headers", HEADERS, nullable=False),
)
SCHEMA = pa.schema(_FIELDS)

_MILLISECONDS = pa.timestamp("ms", tz="UTC")
_MAX_MS = (2**63 - 1) // 1000


def to_arrow(columns: Columns) -> pa.RecordBatch:
    """One Arrow record batch of SCHEMA; only the timestamps are computed, all else is the same memory."""
    count = columns.count
    header_count = columns.header_count
    keys = _array(pa.string(), header_count, None, columns.header_key_offsets, columns.header_key_data)
    values = _array(
        pa.binary(),
        header_count,
        columns.header_value_validity,
        columns.header_value_offsets,
        columns.header_value_data,
    )
    headers = pa.Array.from_buffers(HEADER, header_count, [None], children=[keys, values])
    return pa.RecordBatch.from_arrays(
        [
            _array(pa.int64(), count, None, columns.offsets),
            _timestamps(columns),
            _array(pa.binary(), count, columns.key_validity, columns.key_offsets, columns.key_data),
            _array(pa.binary(), count, columns.value_validity, columns.value_offsets, columns.value_data),
            pa.Array.from_buffers(
                HEADERS, count, [None, pa.py_buffer(columns.header_list_offsets)], children=[headers]
            ),
        ],
        schema=SCHEMA,
    )


def _array(kind: pa.DataType, count: int, *buffers: Buffer | None) -> ArrowArray:
    return pa.Array.from_buffers(kind, count, [None if buf is None else pa.py_buffer(buf) for buf in buffers])


def _timestamps(columns: Columns) -> ArrowArray:
    """Producers may send any 64-bit number; those beyond what microseconds can say become the nearest that they can."""
    try:
        return _array(_MILLISECONDS, columns.count, None, columns.timestamps).cast(TIMESTAMP)
    except pa.ArrowInvalid:
        every = memoryview(columns.timestamps).cast("B").cast("q")
        clamped = array("q", [max(-_MAX_MS, min(_MAX_MS, timestamp_ms)) for timestamp_ms in every])
        return _array(_MILLISECONDS, columns.count, None, clamped.tobytes()).cast(TIMESTAMP)
