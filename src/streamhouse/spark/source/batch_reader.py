"""Batch queries: a snapshot of the partitions at planning, so that a query counts the same while producers run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, Filter, InputPartition
from pyspark.sql.types import StructType

from streamhouse.client.planning import PlanningClient
from streamhouse.model.errors import InvalidConfig
from streamhouse.spark.connections import first_client
from streamhouse.spark.source.catalog import Catalog
from streamhouse.spark.source.data_loss import DataLoss
from streamhouse.spark.source.options import SourceOptions
from streamhouse.spark.source.planner import ScanPlanner, WantedRange
from streamhouse.spark.source.positions import Position
from streamhouse.spark.source.pushdown import ScanFilter, push_down
from streamhouse.spark.source.reading import TaskReader
from streamhouse.spark.source.rows import row_type
from streamhouse.spark.source.task import ScanTask
from streamhouse.spark.worker_memory import settle_memory
from streamhouse.wire.http.planning import EARLIEST


class BatchReader(DataSourceReader):
    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        check_schema(options, schema)
        self._options = options
        self._filter = ScanFilter()
        self._tasks = TaskReader.of(options)

    @property
    def pushFilters(self) -> Callable[[list[Filter]], Iterable[Filter]]:
        return _OptionalPushdown(self)

    def narrow(self, filters: list[Filter]) -> Iterable[Filter]:
        self._filter, left = push_down(filters)
        return left

    def partitions(self) -> list[InputPartition]:
        options = self._options
        assert options.start is not None, "for_batch sets both"
        assert options.end is not None, "for_batch sets both"
        with first_client(options.connection.endpoint) as client:
            return list(ScanPlanner(client, options).tasks(self._wanted(options.start, options.end, client)))

    def _wanted(self, start: Position, end: Position, client: PlanningClient) -> list[WantedRange]:
        options = self._options
        catalog = Catalog(client, options.subscription)
        partitions = [each for each in catalog.partitions(must_exist=True) if self._filter.keeps(*each)]
        starts = catalog.resolve(partitions, start, no_match_is_latest=options.latest_if_no_match)
        ends = catalog.resolve(partitions, end, no_match_is_latest=True)
        data_loss = DataLoss(is_fatal=options.fail_on_data_loss)
        wanted = []
        for each in partitions:
            if starts[each] > ends[each] and not start.by_time:
                data_loss.report(f"{each} was to be read from offset {starts[each]}, but ends at {ends[each]}")
            first, past_last = self._filter.cut(starts[each], ends[each])
            wanted.append(
                WantedRange(
                    partition=each,
                    start=first,
                    end=past_last,
                    topic_id=catalog.topic_ids[each.topic],
                    from_earliest=start.of(each) == EARLIEST,
                    min_timestamp_ms=self._filter.min_timestamp_ms,
                    max_timestamp_ms=self._filter.max_timestamp_ms,
                )
            )
        return wanted

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        settle_memory()
        # Spark asks for one partition of nothing where there are none.
        return self._tasks.read(partition) if isinstance(partition, ScanTask) else iter(())


class _OptionalPushdown:
    """`pushFilters` of a reader that also works without it.

    While spark.sql.python.filterPushdown.enabled is off, which is its default, Spark refuses readers whose method
    is not the one that they inherit. It looks at `__func__`; so this says that it is that one, and is never called."""

    def __init__(self, reader: BatchReader) -> None:
        self.__func__ = DataSourceReader.pushFilters
        self._reader = reader

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        return self._reader.narrow(filters)


def check_schema(options: SourceOptions, schema: StructType) -> None:
    """A schema of the user's own would be silently wrong: what a topic has is fixed."""
    expected = row_type(include_headers=options.include_headers)
    if schema != expected:
        raise InvalidConfig(
            f"a topic has the columns {', '.join(expected.names)}, not {', '.join(schema.names)}",
            hint="read without .schema(…) and decode the value, as from_json_value does",
        )
