"""A pipeline as data: where rows come from, what becomes of them, where they go, and what is promised about that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Guarantee(StrEnum):
    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class OutputMode(StrEnum):
    APPEND = "append"
    UPDATE = "update"
    COMPLETE = "complete"


class RecordFormat(StrEnum):
    """What is in a topic's values. RAW leaves the bytes to the steps."""

    JSON = "json"
    RAW = "raw"


class FileFormat(StrEnum):
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


class Start(StrEnum):
    """Where a stream begins that has no checkpoint yet."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Every so many milliseconds, or None: take what is there and end, in one micro-batch (`is_single`) or several."""

    interval_ms: int | None
    is_single: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    column: str
    delay_ms: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Spark DDL, and the line on which it begins."""

    ddl: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSource:
    """`is_table`: the latest record of each key, as of each micro-batch, or growing with the stream."""

    name: str
    line: int
    topic: str
    topic_line: int
    format: RecordFormat
    schema: Schema | None
    watermark: Watermark | None
    start: Start
    max_records: int | None
    is_table: bool
    is_stream: bool
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSource:
    name: str
    line: int
    path: str
    path_line: int
    format: FileFormat
    schema: Schema
    watermark: Watermark | None
    is_stream: bool
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    name: str
    line: int
    sql: str
    sql_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep:
    """`function` is module:function."""

    name: str
    line: int
    function: str
    function_line: int
    inputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What all sinks have: whose rows they take, and how."""

    name: str
    line: int
    rows_of: str
    mode: OutputMode
    mode_line: int
    guarantee: Guarantee


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSink(Output):
    """JSON: `key` is an SQL expression, the value holds all columns. RAW: the columns are those of a record."""

    topic: str
    topic_line: int
    format: RecordFormat
    key: str | None
    key_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSink(Output):
    path: str
    partition_by: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaSink(Output):
    """`options` are delta-rs's storage options."""

    table: str
    options: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergSink(Output):
    """`catalog` are pyiceberg's properties; with none, its own configuration for the catalog "default" counts."""

    table: str
    catalog: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresSink(Output):
    dsn: str = field(repr=False)
    table: str
    key: tuple[str, ...]
    key_line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSink(Output):
    max_rows: int


Source = TopicSource | FileSource
Step = SqlStep | PythonStep
Sink = TopicSink | ParquetSink | DeltaSink | IcebergSink | PostgresSink | ConsoleSink


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    topic: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """`directory` is where relative paths and modules are looked for: the file's."""

    name: str
    file: str
    directory: Path
    endpoint: str
    endpoint_line: int
    master: str
    checkpoint: str
    trigger: Trigger
    dead_letter: DeadLetter | None
    conf: Mapping[str, str]
    options: Mapping[str, str]
    sources: tuple[Source, ...]
    steps: tuple[Step, ...]
    sinks: tuple[Sink, ...]
