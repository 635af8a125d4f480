"""Values of a topic as columns: those that are JSON."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql.functions import col, from_json
from pyspark.sql.types import ArrayType, MapType, StructType


def from_json_value(
    rows: DataFrame,
    schema: StructType | ArrayType | MapType | str,
    *,
    column: str = "value",
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows with their JSON values parsed, in the same place: `from_json_value(rows, "id LONG, region STRING")`,
    and then `.select("value.id", "timestamp")`.

    A value that is not JSON becomes null, or a struct of nulls, as Spark's `from_json` has it; `options` are its own,
    such as {"mode": "FAILFAST"}."""
    return rows.withColumn(column, from_json(col(column).cast("string"), schema, dict(options or {})))
