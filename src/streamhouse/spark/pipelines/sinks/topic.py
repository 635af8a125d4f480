"""Rows into a topic: through our own sink, which adopts each (sink, batch) once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.pipelines.model import RecordFormat, TopicSink
from streamhouse.spark.pipelines.sinks.writer import BatchId, Refusal
from streamhouse.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RECORD_COLUMNS = ("key", "value", "headers", "partition")


class RecordWriter:
    """Rows that are records already: their columns are some of key, value, headers and partition."""

    def __init__(self, endpoint: str, topic: str, options: Mapping[str, str]) -> None:
        self._options = {"endpoint": endpoint, "topic": topic, **options}

    def shape(self, rows: DataFrame) -> DataFrame:
        SinkOptions.parse(self._options)
        if "value" not in rows.columns:
            raise InvalidConfig("a raw topic sink needs a column 'value'", hint=f"there are {', '.join(rows.columns)}")
        return rows.select(*(name for name in _RECORD_COLUMNS if name in rows.columns))

    def write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        options = {**self._options, "sinkId": batch_id.sink_id, "batchId": str(batch_id.number)}
        batch.write.format("streamhouse").options(**options).mode("append").save()
        return ()


class TopicWriter(RecordWriter):
    def __init__(self, sink: TopicSink, endpoint: str, options: Mapping[str, str]) -> None:
        super().__init__(endpoint, sink.topic, options)
        self._sink = sink

    def shape(self, rows: DataFrame) -> DataFrame:
        if self._sink.format is RecordFormat.RAW:
            return super().shape(rows)
        SinkOptions.parse(self._options)
        key = F.lit(None).cast("binary") if self._sink.key is None else F.expr(self._sink.key).cast("string")
        return rows.select(key.cast("binary").alias("key"), F.to_json(F.struct("*")).cast("binary").alias("value"))
