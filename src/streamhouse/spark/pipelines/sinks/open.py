"""The writer for a sink of the model."""

from __future__ import annotations

from typing import assert_never

from streamhouse.spark.pipelines.model import (
    ConsoleSink,
    DeltaSink,
    IcebergSink,
    ParquetSink,
    Pipeline,
    PostgresSink,
    Sink,
    TopicSink,
)
from streamhouse.spark.pipelines.sinks.console import ConsoleWriter, RowPrinter
from streamhouse.spark.pipelines.sinks.delta import DeltaWriter
from streamhouse.spark.pipelines.sinks.iceberg import IcebergWriter
from streamhouse.spark.pipelines.sinks.parquet import ParquetFiles
from streamhouse.spark.pipelines.sinks.postgres import PostgresWriter
from streamhouse.spark.pipelines.sinks.topic import TopicWriter
from streamhouse.spark.pipelines.sinks.writer import BatchWriter


def open_sink(sink: Sink, pipeline: Pipeline, show_rows: RowPrinter) -> BatchWriter | ParquetFiles:
    match sink:
        case TopicSink():
            return TopicWriter(sink, pipeline.endpoint, pipeline.options)
        case ParquetSink():
            return ParquetFiles(sink)
        case DeltaSink():
            return DeltaWriter(sink)
        case IcebergSink():
            return IcebergWriter(sink)
        case PostgresSink():
            return PostgresWriter(sink)
        case ConsoleSink():
            return ConsoleWriter(sink, show_rows)
        case _:
            assert_never(sink)
