"""Rows into Parquet files by Spark's own file sink, whose log tells its readers which files count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.pipelines.model import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter


class ParquetFiles:
    def __init__(self, sink: ParquetSink) -> None:
        self._sink = sink

    def shape(self, rows: DataFrame) -> DataFrame:
        missing = [name for name in self._sink.partition_by if name not in rows.columns]
        if missing:
            raise InvalidConfig(f"there is no column {missing[0]!r}", hint=f"there are {', '.join(rows.columns)}")
        return rows

    def attach(self, stream: DataStreamWriter) -> DataStreamWriter:
        partitioned = stream.partitionBy(*self._sink.partition_by) if self._sink.partition_by else stream
        return partitioned.format("parquet").option("path", self._sink.path)
