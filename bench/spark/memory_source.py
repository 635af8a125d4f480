"""The limit: a data source that yields Arrow batches which are in memory already, and does nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from streamhouse.spark.source.rows import row_type

SUFFIX = ".arrow"


class MemorySource(DataSource):
    """Option `path`: a directory that `keep` has filled."""

    @classmethod
    def name(cls) -> str:
        return "memory-of-bench"

    def schema(self) -> StructType:
        return row_type(include_headers=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        return MemoryReader(self.options["path"])

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return MemoryStreamReader(self.options["path"])


class MemoryReader(DataSourceReader):
    """A task for each file."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> Sequence[InputPartition]:
        return _partitions(self._path)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(_batches(partition.value))


class MemoryStreamReader(DataSourceStreamReader):
    """All of it in one micro-batch."""

    def __init__(self, path: str) -> None:
        self._path = path

    def initialOffset(self) -> dict[str, int]:
        return {"rounds": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:
        return {"rounds": 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return _partitions(self._path)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return iter(_batches(partition.value))


def _partitions(path: str) -> list[InputPartition]:
    return [InputPartition(str(file)) for file in sorted(Path(path).glob(f"*{SUFFIX}"))]


@cache
def _batches(file: str) -> list[pa.RecordBatch]:
    """Mapped once in each worker, which is used again: the pages are the operating system's, and nothing is copied."""
    reader = pa.ipc.open_file(pa.memory_map(file))
    return [reader.get_batch(number) for number in range(reader.num_record_batches)]


def keep(frame: DataFrame, directory: Path) -> int:
    """Writes what a source yields, in its batches, one file for each of its tasks; returns how many rows there are."""
    directory.mkdir(parents=True)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        rows = 0
        writer = None
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_file(str(directory / f"{context.partitionId():05d}{SUFFIX}"), batch.schema)
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer is not None:
            writer.close()
        yield pa.RecordBatch.from_pydict({"rows": [rows]})

    written = frame.mapInArrow(write, "rows long").collect()
    return sum(row["rows"] for row in written)
