"""The sink with workers that are killed when they have staged their rows: each task's first try, as told by a
directory."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from streamhouse.spark.datasource import StreamHouseDataSource
from streamhouse.spark.sink.writers import BatchWriter, batch_writer


class DyingSink(StreamHouseDataSource):
    """Option `deaths`: a directory that remembers who has died."""

    @classmethod
    def name(cls) -> str:
        return "dying-sink"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        options = {name: value for name, value in self.options.items() if name.lower() != "deaths"}
        writer = batch_writer(options, schema, overwrite)
        assert isinstance(writer, BatchWriter)
        writer.__class__ = _DyingWriter
        writer.deaths = self.options["deaths"]
        return writer


class _DyingWriter(BatchWriter):
    deaths: str

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        staged = super().write(iterator)
        context = TaskContext.get()
        assert context is not None
        try:
            (Path(self.deaths) / f"task-{context.partitionId()}").touch(exist_ok=False)
        except FileExistsError:
            return staged
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody outlives that")
