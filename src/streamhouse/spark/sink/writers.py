"""Spark's writers, batch and stream. Spark pickles them to its tasks, and makes a stream's anew for each commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidConfig, StreamHouseError
from streamhouse.runtime.entropy import new_uuid
from streamhouse.spark.connections import first_client
from streamhouse.spark.sink.commit import StagedMessage, abandon, adopt
from streamhouse.spark.sink.options import SinkOptions
from streamhouse.spark.sink.reached import client_of_stream
from streamhouse.spark.sink.rows import RowColumns
from streamhouse.spark.sink.task import missing_topic, stage_rows

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


def batch_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
    """For `df.write`. Without options `sinkId` and `batchId` every write is one of its own; with both, it happens once,
    however often the program runs."""
    parsed = _parse(options, overwrite=overwrite)
    if (parsed.sink_id is None) != (parsed.batch_id is None):
        raise InvalidConfig(
            "one of the options 'sinkId' and 'batchId' is given, and the other is not",
            hint="together they name a write that must happen once; without them every write happens",
        )
    columns = RowColumns.of(schema, has_topic=bool(parsed.topic))
    with first_client(parsed.connection.endpoint) as client:
        _check_topic(parsed, client)
    return BatchWriter(parsed, columns, parsed.sink_id or str(new_uuid()), parsed.batch_id or 0)


def stream_writer(options: Mapping[str, str], schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
    """For `df.writeStream`. Batches are told apart by the query's id, which its checkpoint keeps, or by `sinkId`."""
    parsed = _parse(options, overwrite=overwrite)
    if parsed.batch_id is not None:
        raise InvalidConfig("a stream's batches have ids already", hint="leave out the option 'batchId'")
    columns = RowColumns.of(schema, has_topic=bool(parsed.topic))
    with client_of_stream(parsed.connection.endpoint, options) as client:
        _check_topic(parsed, client)
    return StreamWriter(parsed, columns)


def _parse(options: Mapping[str, str], *, overwrite: bool) -> SinkOptions:
    if overwrite:
        raise InvalidConfig("a topic cannot be overwritten", hint="use mode 'append', or output mode 'append'/'update'")
    return SinkOptions.parse(options)


def _check_topic(options: SinkOptions, client: PlanningClient) -> None:
    """Before any task runs; also that there is somebody who can be asked."""
    known = {topic.name for topic in client.topics()}
    if options.topic and options.topic not in known:
        raise missing_topic(options.topic)


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, options: SinkOptions, columns: RowColumns, sink_id: str, batch_id: int) -> None:
        self._options = options
        self._columns = columns
        self._sink_id = sink_id
        self._batch_id = batch_id

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]
        return _stage(iterator, self._options, self._columns, self._sink_id, self._batch_id)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        adopt(self._options.connection.endpoint, messages)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        abandon(self._options.connection.endpoint, messages)


class StreamWriter(DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, columns: RowColumns) -> None:
        self._options = options
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]
        sink_id = self._options.sink_id or _property(_QUERY_ID)
        return _stage(iterator, self._options, self._columns, sink_id, int(_property(_BATCH_ID)))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        adopt(self._options.connection.endpoint, messages)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        abandon(self._options.connection.endpoint, messages)


def _stage(
    iterator: Iterator[pa.RecordBatch], options: SinkOptions, columns: RowColumns, sink_id: str, batch_id: int
) -> StagedMessage:
    staged = stage_rows(iterator, options, columns, sink_id=sink_id, batch_id=batch_id, task=_context().partitionId())
    return StagedMessage(sink_id, batch_id, tuple(staged))


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "rows are written by Spark's tasks"
    return context


def _property(name: str) -> str:
    value = _context().getLocalProperty(name)
    if value is None:
        raise StreamHouseError(f"Spark did not say {name}", hint="give the stream a sinkId, and report this")
    return value
