"""The data source with workers that are killed while they read: each task's first try, as told by a directory."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from streamhouse.core.scan_plan import ScanPiece
from streamhouse.spark.datasource import StreamHouseDataSource
from streamhouse.spark.source.batch_reader import BatchReader
from streamhouse.spark.source.options import SourceOptions
from streamhouse.spark.source.stream_reader import StreamReader


class DyingSource(StreamHouseDataSource):
    """Option `deaths`: a directory that remembers who has died."""

    @classmethod
    def name(cls) -> str:
        return "dying"

    def schema(self) -> StructType:
        return StreamHouseDataSource(self._options()).schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return _DyingBatchReader(SourceOptions.parse(self._options()).for_batch(), schema, self.options["deaths"])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _DyingStreamReader(SourceOptions.parse(self._options()).for_stream(), schema, self.options["deaths"])

    def _options(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if name.lower() != "deaths"}


class _DyingBatchReader(BatchReader):
    def __init__(self, options: SourceOptions, schema: StructType, deaths: str) -> None:
        super().__init__(options, schema)
        self._deaths = deaths

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return _dying_once(super().read(partition), partition.pieces, self._deaths)


class _DyingStreamReader(StreamReader):
    def __init__(self, options: SourceOptions, schema: StructType, deaths: str) -> None:
        super().__init__(options, schema)
        self._deaths = deaths

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return _dying_once(super().read(partition), partition.pieces, self._deaths)


def _dying_once(
    batches: Iterator[pa.RecordBatch], pieces: tuple[ScanPiece, ...], deaths: str
) -> Iterator[pa.RecordBatch]:
    """The first batch, and then the worker is gone: what it has sent must not count."""
    mark = Path(deaths) / f"{pieces[0].topic}-{pieces[0].partition}-{pieces[0].start}"
    for batch in batches:
        yield batch
        try:
            mark.touch(exist_ok=False)
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)
