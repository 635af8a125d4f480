"""What rows a sink takes: columns named and typed as Spark's Kafka sink has them, and a timestamp if there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructType,
    TimestampType,
)

from streamhouse.format.arrow import ArrowArray
from streamhouse.model.errors import InvalidInput

_TYPES: Mapping[str, tuple[type[DataType], ...]] = {
    "key": (BinaryType, StringType),
    "value": (BinaryType, StringType),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType,),
    "headers": (ArrayType,),
}
_HINT = (
    "the columns are value (string or binary), key (string or binary), topic (string), partition (int), "
    "headers (array<struct<key:string,value:binary>>) and timestamp (timestamp); all but value can be left out"
)
_MILLISECONDS = pa.timestamp("ms", tz="UTC")


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Where in a row each column is that the sink knows; it passes over others, as Spark's Kafka sink does."""

    positions: Mapping[str, int]

    @staticmethod
    def of(schema: StructType, *, has_topic: bool) -> RowColumns:
        """`has_topic`: an option names the topic, so rows need not."""
        positions: dict[str, int] = {}
        for position, field in enumerate(schema.fields):
            name = field.name.lower()
            if name not in _TYPES:
                continue
            if name in positions:
                raise InvalidInput(f"there are two columns {name!r}", hint="give one of them another name")
            if not isinstance(field.dataType, _TYPES[name]) or (name == "headers" and not _are_headers(field.dataType)):
                raise InvalidInput(f"column {name!r} cannot be {field.dataType.simpleString()}", hint=_HINT)
            positions[name] = position
        if "value" not in positions:
            raise InvalidInput("there is no column 'value'", hint=_HINT)
        if "topic" not in positions and not has_topic:
            raise InvalidInput("no topic is given", hint="set the option 'topic', or add a column 'topic'")
        return RowColumns(positions)

    def select(self, batch: pa.RecordBatch, *, with_topic: bool) -> pa.RecordBatch:
        """The columns that are known, text and bytes both as bytes; the topic only where rows choose it."""
        arrays: dict[str, ArrowArray] = {}
        for name, position in self.positions.items():
            if name != "topic" or with_topic:
                arrays[name] = _KINDS[name](batch.column(position))
        return pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))


def _are_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = [(field.name, type(field.dataType)) for field in kind.elementType.fields]
    return fields == [("key", StringType), ("value", BinaryType)]


def _bytes(column: ArrowArray) -> ArrowArray:
    """Spark's texts and bytes, which it may send with offsets of 64 bits."""
    return column.cast(pa.binary())


def _text(column: ArrowArray) -> ArrowArray:
    return column.cast(pa.string())


def _number(column: ArrowArray) -> ArrowArray:
    return column


def _timestamp_ms(column: ArrowArray) -> ArrowArray:
    """What is finer than milliseconds is cut off."""
    return column.cast(_MILLISECONDS, safe=False).cast(pa.int64())


def _header_lists(column: ArrowArray) -> ArrowArray:
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return column.cast(pa.list_(header))


_KINDS = {
    "key": _bytes,
    "value": _bytes,
    "topic": _text,
    "partition": _number,
    "timestamp": _timestamp_ms,
    "headers": _header_lists,
}
