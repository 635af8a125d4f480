"""Rows as Spark's Kafka source has them, and Arrow batches of exactly that schema from decoded columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from streamhouse.format.arrow import ArrowArray, to_arrow
from streamhouse.format.column_stream import ColumnsPart

CREATE_TIME = 0
LOG_APPEND_TIME = 1
"""Values of `timestampType`, with Kafka's numbers."""

MAX_BATCH_ROWS = 100_000

_HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def row_type(*, include_headers: bool) -> StructType:
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if include_headers:
        fields.append(StructField("headers", ArrayType(_HEADER)))
    return StructType(fields)


class RowBatches:
    """Makes batches of one schema. Columns that are the same in every row are made once and cut to length."""

    def __init__(self, *, include_headers: bool) -> None:
        self._schema = to_arrow_schema(row_type(include_headers=include_headers), timezone="UTC")
        self._headers = self._schema.field("headers").type if include_headers else None
        self._repeated: dict[tuple[str, object], ArrowArray] = {}

    def of(self, topic: str, partition: int, part: ColumnsPart) -> Iterator[pa.RecordBatch]:
        """Mostly one; more where records are so small that there are very many of them."""
        decoded = to_arrow(part.columns)
        for start in range(0, decoded.num_rows, MAX_BATCH_ROWS):
            rows = decoded.slice(start, MAX_BATCH_ROWS)
            arrays: list[ArrowArray] = [
                rows.column("key"),
                rows.column("value"),
                self._same("topic", topic, rows.num_rows),
                self._same("partition", partition, rows.num_rows),
                rows.column("offset"),
                rows.column("timestamp"),
                self._same("timestampType", LOG_APPEND_TIME if part.is_log_append_time else CREATE_TIME, rows.num_rows),
            ]
            if self._headers is not None:
                arrays.append(_headers(rows.column("headers"), self._headers))
            yield pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _same(self, column: str, value: object, count: int) -> ArrowArray:
        known = self._repeated.get((column, value))
        if known is None or len(known) < count:
            scalar = pa.scalar(value, self._schema.field(column).type)
            known = self._repeated[column, value] = pa.repeat(scalar, count)
        return known.slice(0, count)


def _headers(decoded: ArrowArray, kind: pa.DataType) -> ArrowArray:
    """A record without headers has null instead of an empty list, as in Spark's Kafka source."""
    lists: Any = decoded.cast(kind)
    is_empty: Any = pc.equal(pc.list_value_length(lists), pa.scalar(0))
    filled: ArrowArray = pc.if_else(is_empty, pa.scalar(None, kind), lists)
    return filled
