"""Streaming queries: how far each micro-batch goes, and its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from streamhouse.spark.source.batch_reader import check_schema
from streamhouse.spark.source.options import SourceOptions
from streamhouse.spark.source.positions import STARTED_AT, OffsetsJson, StreamPoint, json_of
from streamhouse.spark.source.reading import TaskReader
from streamhouse.spark.source.stream_progress import StreamProgress
from streamhouse.spark.source.task import ScanTask
from streamhouse.spark.worker_memory import settle_memory

StoredOffsets: TypeAlias = dict[str, Any]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's view of a stream. One copy plans for as long as the query runs; others, which are pickled, only read.

    Spark keeps where each micro-batch ends, and that is where the next one starts. Where the first one starts it does
    not keep, but asks for it again, also after a crash, when "latest" is somewhere else. So the first end says as well
    where that was."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(options, schema)
        self._options = options
        self._tasks = TaskReader.of(options)
        self._progress: StreamProgress | None = None
        self._initial: StoredOffsets | None = None

    @property
    def _driver(self) -> StreamProgress:
        if self._progress is None:
            self._progress = StreamProgress(self._options)
        return self._progress

    def initialOffset(self) -> StoredOffsets:
        if self._initial is None:
            self._initial = self._driver.initial().to_json()
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark has limits of one kind only; where both are set, the other is kept to as well."""
        if self._options.max_offsets_per_trigger is not None:
            return ReadMaxRows(self._options.max_offsets_per_trigger)
        if self._options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(self._options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: StoredOffsets, limit: ReadLimit) -> StoredOffsets:
        begin = StreamPoint.of_json(start)
        end = self._driver.next_end(begin, is_limited=not isinstance(limit, ReadAllAvailable))
        if start == self._initial:
            return {**end.to_json(), STARTED_AT: start}
        is_same = end.offsets == begin.offsets and not begin.made_again(end.topic_ids)
        return start if is_same else end.to_json()

    def reportLatestOffset(self) -> OffsetsJson | None:
        latest = self._driver.latest_seen
        return None if latest is None else json_of(latest.offsets)

    def prepareForTriggerAvailableNow(self) -> None:
        self._driver.stop_at_what_is_there()

    def partitions(self, start: StoredOffsets, end: StoredOffsets) -> list[InputPartition]:
        if start == end:
            return []
        return list(self._driver.tasks(StreamPoint.of_json(end.get(STARTED_AT, start)), StreamPoint.of_json(end)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        settle_memory()
        return self._tasks.read(partition) if isinstance(partition, ScanTask) else iter(())

    def commit(self, end: StoredOffsets) -> None:
        self._driver.done(StreamPoint.of_json(end))

    def stop(self) -> None:
        if self._progress is not None:
            self._progress.close()
