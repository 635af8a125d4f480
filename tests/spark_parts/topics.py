"""A topic of a broker in this process, and the data source's readers on it as Spark drives them, without a JVM."""

from __future__ import annotations

import itertools
import pickle
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from log_parts.batches import real
from log_parts.kafka import Kafka
from streamhouse.spark.datasource import StreamHouseDataSource
from streamhouse.spark.source.task import ScanTask
from streamhouse.testing import Broker
from streamhouse.wire.kafka.messages import delete_records, delete_topics

_numbers = itertools.count()
_DELETE_RECORDS_VERSION = 2
_DELETE_TOPICS_VERSION = 4

Value = tuple[str, int, int, bytes]
"""Topic, partition, offset and value."""


@dataclass(frozen=True, slots=True)
class Topic:
    broker: Broker
    name: str

    @staticmethod
    def create(broker: Broker, prefix: str, partitions: int = 2, **config: str) -> Topic:
        name = f"{re.sub('[^a-z]+', '-', prefix.lower())[:60]}-{next(_numbers)}"
        broker.create_topic(name, partitions, {key.replace("_", "."): value for key, value in config.items()})
        return Topic(broker, name)

    def produce(self, *values: bytes, partition: int = 0, timestamp_ms: int | None = None) -> None:
        """One batch; all of it at one time if that is given."""
        batch = real(*values, timestamps=() if timestamp_ms is None else (timestamp_ms,) * len(values))
        with Kafka(self.broker.bootstrap) as kafka:
            assert kafka.produce(self.name, batch, partition=partition).error_code == 0

    def flush(self) -> None:
        """Everything so far is in a segment."""
        self.broker.flush()

    def delete_before(self, offset: int, *, partition: int = 0) -> None:
        asked = delete_records.DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = delete_records.DeleteRecordsRequest(
            topics=[delete_records.DeleteRecordsTopic(name=self.name, partitions=[asked])], timeout_ms=30_000
        )
        with Kafka(self.broker.bootstrap) as kafka:
            answer = kafka.call(delete_records, request, _DELETE_RECORDS_VERSION)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def delete(self) -> None:
        request = delete_topics.DeleteTopicsRequest(topic_names=[self.name], timeout_ms=30_000)
        with Kafka(self.broker.bootstrap) as kafka:
            answer = kafka.call(delete_topics, request, _DELETE_TOPICS_VERSION)
        assert answer.responses[0].error_code == 0, answer

    def values(self) -> list[Value]:
        """What a Kafka client reads."""
        with Kafka(self.broker.bootstrap) as kafka:
            return [
                (self.name, partition, record.offset, record.value or b"")
                for partition in range(2)
                for record in kafka.read(self.name, partition=partition)
            ]

    def source(self, **options: str) -> StreamHouseDataSource:
        named = {} if options.keys() & {"subscribePattern", "assign"} else {"subscribe": self.name}
        return StreamHouseDataSource({"endpoint": self.broker.endpoint, **named, **options})

    def batch_reader(self, **options: str) -> DataSourceReader:
        source = self.source(**options)
        return source.reader(source.schema())

    def stream(self, **options: str) -> Stream:
        return Stream(self, options)

    def read(self, *filters: Filter, **options: str) -> list[Value]:
        """What a batch query reads."""
        return read(self.batch_reader(**options), *filters)


class Stream:
    """A streaming query as Spark runs it: `checkpoint` is what it would keep. `restart` is a driver that died."""

    def __init__(self, topic: Topic, options: Mapping[str, str]) -> None:
        self._topic = topic
        self._options = options
        self.checkpoint: dict[str, Any] | None = None
        self.reader: Any = None
        self.restart()

    def restart(self, **options: str) -> None:
        source = self._topic.source(**{**self._options, **options})
        self.stop()
        self.reader = source.streamReader(source.schema())

    def stop(self) -> None:
        if self.reader is not None:
            self.reader.stop()

    def plan(self, limit: ReadLimit | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """Where the next micro-batch starts and ends."""
        if self.checkpoint is None:
            self.checkpoint = self.reader.initialOffset()
        end = self.reader.latestOffset(self.checkpoint, limit or self.reader.getDefaultReadLimit())
        return self.checkpoint, end

    def next_batch(self, limit: ReadLimit | None = None) -> list[Value]:
        """One micro-batch, or nothing if there is nothing new."""
        start, end = self.plan(limit)
        if start == end:
            return []
        found = read_tasks(self.reader, self.reader.partitions(start, end))
        self.checkpoint = end
        return found


def read(reader: DataSourceReader, *filters: Filter) -> list[Value]:
    reader.pushFilters(list(filters))
    return read_tasks(reader, reader.partitions())


def read_tasks(reader: DataSourceReader | DataSourceStreamReader, tasks: Iterable[InputPartition]) -> list[Value]:
    """Through a copy of reader and tasks, as executors have them; in order of topic, partition and offset."""
    copy = pickle.loads(pickle.dumps(reader)) if isinstance(reader, DataSourceReader) else reader
    return sorted(
        (row["topic"], row["partition"], row["offset"], row["value"])
        for task in tasks
        for batch in copy.read(pickle.loads(pickle.dumps(task)))
        for row in batch.to_pylist()
    )


def pieces_of(tasks: Iterable[InputPartition]) -> list[Any]:
    return [piece for task in tasks if isinstance(task, ScanTask) for piece in task.pieces]
