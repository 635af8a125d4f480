"""What could not be parsed or transformed, as records for the dead-letter topic, with the why and whence in headers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from streamhouse.spark.pipelines.inputs import FILE_PATH, MALFORMED
from streamhouse.spark.pipelines.isolation import FAILURE
from streamhouse.spark.pipelines.records import ERROR, ORIGIN
from streamhouse.spark.pipelines.sinks.writer import Refusal

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

HEADER_PREFIX = "streamhouse."
"""Of the headers `error`, `pipeline`, `step`, and as far as it is known `topic`, `partition`, `offset`, `timestamp`
(of the record, ISO 8601), or `file`. The record's own headers come first."""

_NO_HEADERS = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"


def of_records(bad: DataFrame, pipeline: str, source: str) -> DataFrame:
    """Records of a topic that did not parse."""
    return _letters(bad, F.col(ERROR), pipeline, source, F.col(f"{ORIGIN}.key"), F.col(f"{ORIGIN}.value"), True)


def of_lines(bad: DataFrame, pipeline: str, source: str) -> DataFrame:
    """Lines of a file that did not parse."""
    error = F.lit("the line is not of the declared schema")
    key = F.lit(None).cast("binary")
    return _letters(bad, error, pipeline, source, key, F.col(MALFORMED).cast("binary"), False, file=F.col(FILE_PATH))


def of_rows(failed: DataFrame, pipeline: str, step: str) -> DataFrame:
    """Rows that a function failed for: the record that the row was made of, if it still says so, or else the row."""
    error = F.col(f"{FAILURE}.error")
    row = F.col(f"{FAILURE}.row").cast("binary")
    if ORIGIN not in failed.columns:
        return _letters(failed, error, pipeline, step, F.lit(None).cast("binary"), row, False)
    # A null origin, from an outer join for one, names no record.
    value = F.when(F.col(f"{ORIGIN}.topic").isNull(), row).otherwise(F.col(f"{ORIGIN}.value"))
    return _letters(failed, error, pipeline, step, F.col(f"{ORIGIN}.key"), value, True)


def of_refusals(session: SparkSession, refusals: Sequence[Refusal], pipeline: str, sink: str) -> DataFrame:
    """Rows that a sink's store did not take; of one partition, so that they keep their order."""
    rows = session.createDataFrame([(refusal.row, refusal.error) for refusal in refusals], "row STRING, error STRING")
    key = F.lit(None).cast("binary")
    return _letters(rows.coalesce(1), F.col("error"), pipeline, sink, key, F.col("row").cast("binary"), False)


def _letters(
    rows: DataFrame,
    error: Column,
    pipeline: str,
    step: str,
    key: Column,
    value: Column,
    has_origin: bool,
    *,
    file: Column | None = None,
) -> DataFrame:
    facts = {"error": error, "pipeline": F.lit(pipeline), "step": F.lit(step)}
    headers = F.expr(_NO_HEADERS)
    if has_origin:
        facts |= {name: F.col(f"{ORIGIN}.{name}") for name in ("topic", "partition", "offset")}
        facts["timestamp"] = F.date_format(F.col(f"{ORIGIN}.timestamp"), "yyyy-MM-dd'T'HH:mm:ss.SSSXXX")
        headers = F.coalesce(F.col(f"{ORIGIN}.headers"), headers)
    if file is not None:
        facts["file"] = file
    ours = F.array(*(_header(name, fact) for name, fact in facts.items()))
    known = F.filter(ours, lambda header: header["value"].isNotNull())
    return rows.select(key.alias("key"), value.alias("value"), F.concat(headers, known).alias("headers"))


def _header(name: str, value: Column) -> Column:
    text = value.cast("string").cast("binary")
    return F.struct(F.lit(HEADER_PREFIX + name).alias("key"), text.alias("value"))
