"""Records of a topic as rows: JSON values become columns, and what does not parse is kept apart with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from streamhouse.model.errors import InvalidConfig

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ORIGIN = "_origin"
"""The record that a row was made of, a struct. Steps may use it and may drop it; sinks never write it."""

ORIGIN_TYPE = (
    "STRUCT<key: BINARY, value: BINARY, topic: STRING, partition: INT, offset: BIGINT, timestamp: TIMESTAMP, "
    "headers: ARRAY<STRUCT<key: STRING, value: BINARY>>>"
)
ERROR = "_error"

_CORRUPT = "_corrupt"
_PARSED = "_parsed"
_ORIGIN_FIELDS = ("key", "value", "topic", "partition", "offset", "timestamp", "headers")


def parse_ddl(ddl: str) -> StructType:
    """Columns from Spark DDL; PySparkException if it is none."""
    schema = StructType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        raise InvalidConfig(f"{ddl!r} is a single type", hint="write NAME TYPE, NAME TYPE, …")
    return schema


def with_origin(records: DataFrame) -> DataFrame:
    """The columns of the source, and once more as what their row was made of."""
    return records.withColumn(ORIGIN, F.struct(*_ORIGIN_FIELDS))


def parse_json(records: DataFrame, schema: StructType) -> DataFrame:
    """The schema's columns, the origin, and why it is not a good row: an error, or NULL.

    A field of another type than declared is an error, as is the absence of one that is declared NOT NULL. A field that
    is not declared is not looked at."""
    fields = [StructField(field.name, field.dataType) for field in schema.fields]
    options = {"columnNameOfCorruptRecord": _CORRUPT, "mode": "PERMISSIVE"}
    parsed = F.from_json(
        F.col("value").cast("string"), StructType([*fields, StructField(_CORRUPT, StringType())]), options
    )
    # Not simply a column: the optimizer would put a copy of the parsing wherever a later expression uses its result.
    # It does not look into what is exploded.
    once = F.explode(F.array(parsed)).alias(_PARSED)
    return (
        with_origin(records)
        .select(ORIGIN, once)
        .select(
            *(F.col(f"{_PARSED}.`{name}`").alias(name) for name in schema.fieldNames()),
            ORIGIN,
            _error_of(schema).alias(ERROR),
        )
    )


def good_rows(parsed: DataFrame) -> DataFrame:
    return parsed.where(F.col(ERROR).isNull()).drop(ERROR)


def bad_rows(parsed: DataFrame) -> DataFrame:
    """Of a record without a value nothing needs to be told where that means that its key was deleted."""
    return parsed.where(F.col(ERROR).isNotNull())


def latest_by_key(records: DataFrame) -> DataFrame:
    """One record of each key. All records of a key are in one partition, so offsets tell which is the latest."""
    latest = F.max_by(F.struct(*(name for name in records.columns)), F.col("offset"))
    return records.where(F.col("key").isNotNull()).groupBy("key").agg(latest.alias("latest")).select("latest.*")


def _error_of(schema: StructType) -> Column:
    error = (
        F.when(F.col(f"{ORIGIN}.value").isNull(), "the record has no value")
        .when(F.col(_PARSED).isNull(), "the value is empty")
        .when(F.col(f"{_PARSED}.{_CORRUPT}").isNotNull(), "the value is not JSON of the declared schema")
    )
    for field in schema.fields:
        if not field.nullable:
            error = error.when(F.col(f"{_PARSED}.`{field.name}`").isNull(), f"the value has no {field.name!r}")
    return error
