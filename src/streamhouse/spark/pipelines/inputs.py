"""Opens a pipeline's sources: the real ones to run it, or empty ones of the same shape to check it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from streamhouse.spark.pipelines.model import FileFormat, FileSource, Pipeline, TopicSource
from streamhouse.spark.pipelines.records import parse_ddl

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RECORD_DDL = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
MALFORMED = "_malformed"
"""The line of a CSV or JSON file that does not parse, as it is; NULL for all others."""
FILE_PATH = "_file"


class Inputs(Protocol):
    def records(self, source: TopicSource, *, streaming: bool) -> DataFrame:
        """The columns of RECORD_DDL."""

    def files(self, source: FileSource, schema: StructType) -> DataFrame:
        """The schema's columns; streams of text also have MALFORMED and FILE_PATH."""


class RealInputs:
    def __init__(self, session: SparkSession, pipeline: Pipeline) -> None:
        self._session = session
        self._pipeline = pipeline

    def records(self, source: TopicSource, *, streaming: bool) -> DataFrame:
        reader = self._session.readStream if streaming else self._session.read
        return (
            reader.format("streamhouse").options(**record_options(self._pipeline, source, streaming=streaming)).load()
        )

    def files(self, source: FileSource, schema: StructType) -> DataFrame:
        reader = self._session.readStream if source.is_stream else self._session.read
        reader = reader.format(source.format.value).options(**_defaults(source), **source.options)
        if not tells_malformed(source):
            return reader.schema(schema).load(source.path)
        with_line = StructType([*schema.fields]).add(MALFORMED, StringType())
        return reader.schema(with_line).load(source.path).withColumn(FILE_PATH, F.col("_metadata.file_path"))


class EmptyInputs:
    """Asks nobody for anything: a stream is a stream of nothing."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def records(self, source: TopicSource, *, streaming: bool) -> DataFrame:
        return self._empty(parse_ddl(RECORD_DDL), streaming=streaming)

    def files(self, source: FileSource, schema: StructType) -> DataFrame:
        if tells_malformed(source):
            schema = StructType([*schema.fields]).add(MALFORMED, StringType()).add(FILE_PATH, StringType())
        return self._empty(schema, streaming=source.is_stream)

    def _empty(self, schema: StructType, *, streaming: bool) -> DataFrame:
        reader = self._session.readStream.format("rate").load() if streaming else self._session.range(0)
        return reader.select(*(F.lit(None).cast(field.dataType).alias(field.name) for field in schema.fields))


def record_options(pipeline: Pipeline, source: TopicSource, *, streaming: bool) -> dict[str, str]:
    """The data source's; the user's own count before the pipeline's."""
    options = {
        "endpoint": pipeline.endpoint,
        "subscribe": source.topic,
        "startingOffsets": source.start.value if streaming else "earliest",
        "includeHeaders": "true",
    }
    if streaming and source.max_records is not None:
        options["maxOffsetsPerTrigger"] = str(source.max_records)
    return {**options, **pipeline.options, **source.options}


def tells_malformed(source: FileSource) -> bool:
    return source.is_stream and source.format is not FileFormat.PARQUET


def _defaults(source: FileSource) -> Mapping[str, str]:
    """A stream keeps lines that do not parse, for the dead letters; reference data that is broken is an error."""
    if source.format is FileFormat.PARQUET:
        return {}
    header = {"header": "true"} if source.format is FileFormat.CSV else {}
    if tells_malformed(source):
        return {**header, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": MALFORMED}
    return {**header, "mode": "FAILFAST"}
