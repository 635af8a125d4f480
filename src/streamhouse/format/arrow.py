"""Columns as Arrow arrays and back, without copying; the only module of the format layer that needs pyarrow."""

from __future__ import annotations

from array import array
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from streamhouse.format.columns import Columns
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import InvalidInput

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


def from_arrow(
    values: ArrowArray,
    timestamps_ms: ArrowArray,
    *,
    keys: ArrowArray | None = None,
    headers: ArrowArray | None = None,
) -> Columns:
    """Columns over the memory of Arrow arrays of one length: values and keys binary or string, timestamps int64 without
    nulls, headers lists of (key, value) structs. Without keys all are null; what has no headers has an empty list."""
    count = len(values)
    key_validity, key_offsets, key_data = _no_blobs(count) if keys is None else _blobs(keys)
    value_validity, value_offsets, value_data = _blobs(values)
    lists, names, contents = _no_headers(count) if headers is None else _headers(headers)
    _, header_key_offsets, header_key_data = _blobs(names)
    header_value_validity, header_value_offsets, header_value_data = _blobs(contents)
    return Columns(
        count=count,
        offsets=bytes(8 * count),
        timestamps=_buffer(_from_start(timestamps_ms).buffers()[1]),
        key_offsets=key_offsets,
        key_data=key_data,
        key_validity=key_validity,
        value_offsets=value_offsets,
        value_data=value_data,
        value_validity=value_validity,
        header_list_offsets=lists,
        header_key_offsets=header_key_offsets,
        header_key_data=header_key_data,
        header_value_offsets=header_value_offsets,
        header_value_data=header_value_data,
        header_value_validity=header_value_validity,
    )


def _blobs(items: ArrowArray) -> tuple[Buffer | None, Buffer, Buffer]:
    """Validity, offsets and data."""
    if items.type not in (pa.binary(), pa.string()):
        raise InvalidInput(f"{items.type} is not binary or text")
    items = _from_start(items)
    validity, offsets, data = items.buffers()
    # Buffers are padded, but how many headers there are is told from the length of theirs.
    return (
        _buffer(validity) if items.null_count else None,
        _buffer(offsets)[: 4 * (len(items) + 1)] if len(items) else bytes(4),
        _buffer(data),
    )


def _no_blobs(count: int) -> tuple[Buffer, Buffer, Buffer]:
    return bytes((count + 7) // 8), bytes(4 * (count + 1)), b""


def _headers(items: ArrowArray) -> tuple[Buffer, ArrowArray, ArrowArray]:
    """Offsets of the lists, and the keys and values of all headers."""
    if not isinstance(items, pa.ListArray) or not pa.types.is_struct(items.type.value_type):
        raise InvalidInput(f"{items.type} is not a list of headers")
    if items.null_count:
        items = pc.if_else(items.is_valid(), items, pa.scalar([], items.type))
    items = _from_start(items)
    assert isinstance(items, pa.ListArray)
    entries = items.values
    assert isinstance(entries, pa.StructArray)
    names, contents = entries.field("key"), entries.field("value")
    if entries.null_count or names.null_count:
        raise InvalidInput("a header is null, or its key is", hint="leave it out")
    return _buffer(items.buffers()[1]) if len(items) else bytes(4), names, contents


def _no_headers(count: int) -> tuple[Buffer, ArrowArray, ArrowArray]:
    return bytes(4 * (count + 1)), pa.array([], pa.string()), pa.array([], pa.binary())


def _from_start(items: ArrowArray) -> ArrowArray:
    """The same in memory of its own, if it is a slice of something longer: validity starts at a bit, not at a byte."""
    return items if items.offset == 0 else pa.concat_arrays([items, items.slice(0, 0)])


def _buffer(buf: pa.Buffer | None) -> memoryview:
    return memoryview(b"" if buf is None else buf)
