"""One task of a write: Arrow batches in, staged objects out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from streamhouse.format.arrow import ArrowArray, from_arrow
from streamhouse.format.batch import HEADER_BYTES
from streamhouse.format.records import encode_columns
from streamhouse.model.errors import BatchTooLarge, InvalidInput, NotFound
from streamhouse.runtime.clock import SystemClock
from streamhouse.spark.connections import cluster_of, planning_client
from streamhouse.spark.sink.options import SinkOptions
from streamhouse.spark.sink.partitioning import Partitioner
from streamhouse.spark.sink.presigned import put_by_url
from streamhouse.spark.sink.rows import RowColumns
from streamhouse.spark.sink.staging import Put, StagingArea
from streamhouse.spark.worker_memory import settle_memory
from streamhouse.wire.http.planning import StagedObject, TopicAnswer

# Rows that are encoded together: so many that each partition gets a batch worth having.
_CHUNK_BYTES = 16 * 2**20


def stage_rows(
    batches: Iterable[pa.RecordBatch],
    options: SinkOptions,
    columns: RowColumns,
    *,
    sink_id: str,
    batch_id: int,
    task: int,
) -> list[StagedObject]:
    """Stage all rows. A task that fails leaves objects behind, which the node removes."""
    settle_memory()
    area = StagingArea(_put(options), sink_id, batch_id, task)
    encoder: _Encoder | None = None
    for rows in _chunks(columns.select(batch, with_topic=not options.topic) for batch in batches):
        encoder = encoder or _Encoder(options, area, task)
        encoder.encode(rows)
    return area.finish()


def _put(options: SinkOptions) -> Put:
    if options.presign:
        return partial(put_by_url, planning_client(options.connection.endpoint))
    return options.connection.store(cluster_of(options.connection.endpoint).objects).create


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    waiting: list[pa.RecordBatch] = []
    size_bytes = 0
    for batch in batches:
        if batch.num_rows:
            waiting.append(batch)
            size_bytes += batch.nbytes
        if size_bytes >= _CHUNK_BYTES:
            yield _concatenated(waiting)
            waiting, size_bytes = [], 0
    if waiting:
        yield _concatenated(waiting)


def _concatenated(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


class _Encoder:
    def __init__(self, options: SinkOptions, area: StagingArea, task: int) -> None:
        self._options = options
        self._area = area
        self._task = task
        self._now_ms = SystemClock().now_ms()
        self._topics = {topic.name: topic for topic in planning_client(options.connection.endpoint).topics()}
        self._partitioners: dict[str, Partitioner] = {}

    def encode(self, rows: pa.RecordBatch) -> None:
        if self._options.topic:
            self._encode_topic(self._options.topic, rows)
            return
        names = rows.column("topic")
        if names.null_count:
            raise InvalidInput("a row has no topic", hint="set the option 'topic', or fill the column 'topic'")
        for name in pc.unique(names):
            self._encode_topic(str(name), rows.filter(pc.equal(names, name)))

    def _encode_topic(self, name: str, rows: pa.RecordBatch) -> None:
        topic = self._topics.get(name)
        if topic is None:
            raise missing_topic(name)
        partitioner = self._partitioners.get(name)
        if partitioner is None:
            partitioner = self._partitioners[name] = Partitioner(name, topic.partition_count, self._task)
        partitioned = partitioner.partition(rows)
        arrays = {field: partitioned.rows.column(field) for field in rows.schema.names}
        columns = from_arrow(
            arrays["value"],
            self._timestamps(arrays.get("timestamp"), rows.num_rows),
            keys=arrays.get("key"),
            headers=arrays.get("headers"),
        )
        limit_bytes = int(topic.config["max.message.bytes"])
        for partition, its_rows in partitioned.ranges:
            batches = encode_columns(
                columns, codec=self._options.codec, max_batch_bytes=max(limit_bytes, HEADER_BYTES), rows=its_rows
            )
            _check_sizes(topic, batches, limit_bytes)
            self._area.add(name, partition, batches, len(its_rows))

    def _timestamps(self, given: ArrowArray | None, count: int) -> ArrowArray:
        """What has none is of now."""
        if given is None:
            return pa.repeat(pa.scalar(self._now_ms, pa.int64()), count)
        filled: ArrowArray = pc.if_else(given.is_valid(), given, pa.scalar(self._now_ms, pa.int64()))
        return filled


def missing_topic(name: str) -> NotFound:
    return NotFound(f"there is no topic {name!r}", hint=f"create it: streamhouse topic create {name}")


def _check_sizes(topic: TopicAnswer, batches: list[bytes], limit_bytes: int) -> None:
    largest = max(map(len, batches), default=0)
    if largest > limit_bytes:
        raise BatchTooLarge(
            f"a record of {largest} bytes is larger than {topic.name}'s max.message.bytes, {limit_bytes}",
            hint="raise max.message.bytes, or write smaller values",
        )
