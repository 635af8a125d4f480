"""Records taken from columns: the same Arrow memory goes in, and what is left comes out as columns to encode."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from streamhouse.format.arrow import ArrowArray
from streamhouse.format.columns import Columns
from streamhouse.model.buffer import Buffer

_HEADERS = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))
_INT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Columns as an Arrow batch, with timestamps as producers sent them; without the headers where nobody has any."""

    batch: pa.RecordBatch

    @classmethod
    def of(cls, columns: Columns) -> Rows:
        count = columns.count
        arrays = [
            _array(pa.int64(), count, None, columns.offsets),
            _array(pa.int64(), count, None, columns.timestamps),
            key_array(columns),
            _array(pa.binary(), count, columns.value_validity, columns.value_offsets, columns.value_data),
        ]
        names = ["offset", "timestamp", "key", "value"]
        if columns.header_count:
            arrays.append(_header_lists(columns))
            names.append("headers")
        return cls(pa.RecordBatch.from_arrays(arrays, names=names))

    def filter(self, kept: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Rows:
        return Rows(self.batch.filter(pa.array(kept)))

    def stretches_of_one_timestamp(self) -> list[Rows]:
        """Neighbours with the same timestamp, in order."""
        timestamps = np.asarray(self.batch.column("timestamp"))
        starts = [0, *(np.flatnonzero(np.diff(timestamps)) + 1).tolist(), len(timestamps)]
        if len(starts) == 2:
            return [self]
        # Taken and not sliced: `columns` needs arrays that start at their buffers' first byte.
        return [Rows(self.batch.take(np.arange(start, end))) for start, end in pairwise(starts)]

    def columns(self) -> Columns:
        batch = self.batch
        count = batch.num_rows
        key_validity, key_offsets, key_data = _buffers(batch.column("key"))
        value_validity, value_offsets, value_data = _buffers(batch.column("value"))
        list_offsets: Buffer = bytes(_INT32_BYTES * (count + 1))
        header_count = 0
        header_keys: tuple[Buffer | None, Buffer, Buffer] = (None, bytes(_INT32_BYTES), b"")
        header_values = header_keys
        if "headers" in batch.schema.names:
            headers: Any = batch.column("headers")
            list_offsets = _present(headers.buffers()[1])
            entries = headers.values
            header_count = len(entries)
            header_keys, header_values = _buffers(entries.field("key")), _buffers(entries.field("value"))
        return Columns(
            count=count,
            offsets=_present(batch.column("offset").buffers()[1]),
            timestamps=_present(batch.column("timestamp").buffers()[1]),
            key_offsets=key_offsets,
            key_data=key_data,
            key_validity=key_validity,
            value_offsets=value_offsets,
            value_data=value_data,
            value_validity=value_validity,
            header_list_offsets=list_offsets,
            # Its length says how many headers there are, and Arrow's buffers may be longer than their arrays.
            header_key_offsets=memoryview(header_keys[1])[: _INT32_BYTES * (header_count + 1)],
            header_key_data=header_keys[2],
            header_value_offsets=header_values[1],
            header_value_data=header_values[2],
            header_value_validity=header_values[0],
        )


def key_array(columns: Columns) -> ArrowArray:
    return _array(pa.binary(), columns.count, columns.key_validity, columns.key_offsets, columns.key_data)


def _header_lists(columns: Columns) -> ArrowArray:
    count = columns.header_count
    keys = _array(pa.binary(), count, None, columns.header_key_offsets, columns.header_key_data)
    values = _array(
        pa.binary(), count, columns.header_value_validity, columns.header_value_offsets, columns.header_value_data
    )
    entries = pa.Array.from_buffers(_HEADERS.value_type, count, [None], children=[keys, values])
    offsets = pa.py_buffer(columns.header_list_offsets)
    return pa.Array.from_buffers(_HEADERS, columns.count, [None, offsets], children=[entries])


def _array(kind: pa.DataType, count: int, *buffers: Buffer | None) -> ArrowArray:
    return pa.Array.from_buffers(kind, count, [None if buf is None else pa.py_buffer(buf) for buf in buffers])


def _buffers(array: ArrowArray) -> tuple[Buffer | None, Buffer, Buffer]:
    """Validity, offsets and data."""
    assert array.offset == 0, "a slice shares its parent's buffers"
    validity, offsets, data = array.buffers()
    return None if validity is None else memoryview(validity), _present(offsets), _present(data)


def _present(buffer: pa.Buffer | None) -> Buffer:
    """Arrow leaves out a buffer that nothing is in."""
    return b"" if buffer is None else memoryview(buffer)
