"""Parquet files of a lake table, written by the executors: what the driver commits is only their names."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema

from streamhouse.model.errors import InvalidConfig
from streamhouse.objects.blocking import blocking_store
from streamhouse.objects.s3 import S3Options
from streamhouse.runtime.entropy import new_uuid

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from streamhouse.objects.blocking import BlockingStore

_FILE_BYTES = 64 * 2**20
"""In memory, before a new file is begun."""

_RESULT = "key STRING, size_bytes BIGINT, row_count BIGINT"
# The same option as delta-rs, pyiceberg and AWS's tools call it.
_S3_NAMES = {
    "endpoint": ("aws_endpoint_url", "aws_endpoint", "s3.endpoint"),
    "region": ("aws_region", "s3.region"),
    "access_key_id": ("aws_access_key_id", "s3.access-key-id"),
    "secret_access_key": ("aws_secret_access_key", "s3.secret-access-key"),
    "session_token": ("aws_session_token", "s3.session-token"),
}


class DataFile(NamedTuple):
    """`key` is its name below the directory it was written to."""

    key: str
    size_bytes: int
    row_count: int


@dataclass(frozen=True, slots=True)
class Directory:
    """Where files go: a URL that our object stores know, and the keys to it."""

    url: str
    s3: S3Options | None

    def write(self, batch: DataFrame, name: str) -> list[DataFile]:
        """Runs the batch; every task writes its rows to files that begin with the name and belong to no table yet."""
        schema = to_arrow_schema(batch.schema, timezone="UTC")
        written = batch.mapInArrow(_FileTask(self, name, schema), _RESULT).collect()
        return [DataFile(row["key"], row["size_bytes"], row["row_count"]) for row in written]

    def remove(self, files: Iterable[DataFile]) -> None:
        """Files that are in no table."""
        keys = [file.key for file in files]
        if keys:
            self.store().delete(keys)

    def store(self) -> BlockingStore:
        return blocking_store(self.url, self.s3)


def directory_at(location: str, options: Mapping[str, str]) -> Directory:
    """`options` as a lake library takes them for the same place."""
    if location.startswith("s3://"):
        given = {name.lower(): value for name, value in options.items()}

        def value_of(field: str) -> str:
            return next((given[name] for name in _S3_NAMES[field] if given.get(name)), "")

        s3 = S3Options(
            endpoint=value_of("endpoint") or _from_environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
            region=value_of("region") or _from_environment("AWS_REGION") or S3Options().region,
            access_key_id=value_of("access_key_id"),
            secret_access_key=value_of("secret_access_key"),
            session_token=value_of("session_token"),
        )
        return Directory(location, s3)
    if "://" in location and not location.startswith("file://"):
        raise InvalidConfig(f"cannot write to {location!r}", hint="use a directory, or s3://bucket/prefix")
    return Directory(Path(location.removeprefix("file://")).absolute().as_uri(), None)


def _from_environment(*names: str) -> str:
    """Of this process, as the lake libraries read it here: on an executor it may be another's."""
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


class _FileTask:
    """What a task runs, for `mapInArrow`."""

    def __init__(self, directory: Directory, name: str, schema: pa.Schema) -> None:
        self._directory = directory
        self._name = name
        self._schema = schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        open_file: _OpenFile | None = None
        for batch in batches:
            if batch.num_rows == 0:
                continue
            open_file = open_file or _OpenFile(self._schema)
            open_file.add(batch)
            if open_file.size_bytes >= _FILE_BYTES:
                yield self._finish(open_file)
                open_file = None
        if open_file is not None:
            yield self._finish(open_file)

    def _finish(self, file: _OpenFile) -> pa.RecordBatch:
        # A task may be tried again: each try has names of its own, and only those of one are committed.
        key = f"{self._name}-{new_uuid()}.parquet"
        content = file.close()
        self._directory.store().create(key, [content])
        return pa.RecordBatch.from_pydict({"key": [key], "size_bytes": [len(content)], "row_count": [file.row_count]})


class _OpenFile:
    def __init__(self, schema: pa.Schema) -> None:
        self._buffer = pa.BufferOutputStream()
        self._schema = schema
        self._writer = pq.ParquetWriter(self._buffer, schema, compression="zstd")
        self.row_count = 0

    @property
    def size_bytes(self) -> int:
        return int(self._buffer.tell())

    def add(self, batch: pa.RecordBatch) -> None:
        self._writer.write_batch(batch.cast(self._schema))
        self.row_count += batch.num_rows

    def close(self) -> bytes:
        self._writer.close()
        return self._buffer.getvalue().to_pybytes()
