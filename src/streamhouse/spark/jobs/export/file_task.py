"""One file of an export, in one worker: blocks of the log go in, Parquet comes out, and no row leaves the process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from streamhouse.core.scan_plan import ScanPiece
from streamhouse.model.errors import AlreadyExists
from streamhouse.spark.options import Connection
from streamhouse.spark.pipelines.sinks.data_files import DataFile, Directory
from streamhouse.spark.source.data_loss import DataLoss
from streamhouse.spark.source.reading import TaskReader
from streamhouse.spark.source.rows import row_type
from streamhouse.spark.source.task import ScanTask
from streamhouse.wire.http.planning import ObjectsLocation

# Any, because the library's stubs know less than the library, which takes names of columns as well.
_PARQUET: dict[str, Any] = {
    "compression": "zstd",
    # Columns with few values. For keys and values a dictionary would be built, grow too large, and be thrown away.
    "use_dictionary": ["topic", "partition", "timestampType"],
    "column_encoding": {"offset": "DELTA_BINARY_PACKED", "timestamp": "DELTA_BINARY_PACKED"},
    # What a query can skip files by. The smallest key of a file says nothing.
    "write_statistics": ["partition", "offset", "timestamp"],
}
_ROW_GROUP_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePointer:
    """`pieces` of one partition, in order; `key` is the file's name below the directory."""

    connection: Connection
    location: ObjectsLocation
    pieces: tuple[ScanPiece, ...]
    directory: Directory
    key: str


def export_schema() -> pa.Schema:
    """The source's columns, headers among them. Everything may be null, as the libraries of lake tables like it."""
    schema = to_arrow_schema(row_type(include_headers=True), timezone="UTC")
    return pa.schema([field.with_nullable(True) for field in schema])


def write_file(pointer: FilePointer) -> DataFile:
    """A range without a record makes no file: its size is 0 then. A file of that name which is there already is an
    earlier try's: stores create a file whole or not at all."""
    reader = TaskReader(
        connection=pointer.connection, include_headers=True, presign=False, data_loss=DataLoss(is_fatal=False)
    )
    schema = export_schema()
    buffer = pa.BufferOutputStream()
    row_count = 0
    with pq.ParquetWriter(buffer, schema, **_PARQUET) as writer:
        for batch in reader.read(ScanTask(pointer.pieces, pointer.location)):
            writer.write_batch(batch.cast(schema), row_group_size=_ROW_GROUP_ROWS)
            row_count += batch.num_rows
    if not row_count:
        return DataFile(pointer.key, 0, 0)
    content = buffer.getvalue().to_pybytes()
    try:
        pointer.directory.store().create(pointer.key, [content])
    except AlreadyExists:
        there = pointer.directory.store().get(pointer.key)
        return DataFile(pointer.key, len(there), pq.read_metadata(pa.BufferReader(there)).num_rows)
    return DataFile(pointer.key, len(content), row_count)
