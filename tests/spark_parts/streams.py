"""Streaming queries that are run to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamhouse.spark.pipelines.failure import as_error, is_late_start

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

_MOST_LATE_STARTS = 10


def run_to_end(writer: DataStreamWriter, path: str | None = None) -> StreamingQuery:
    """Until everything that is there is written. One whose source came too late is started again."""
    from pyspark.errors import StreamingQueryException

    for _ in range(_MOST_LATE_STARTS):
        query = writer.trigger(availableNow=True).start(path)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if not is_late_start(as_error("the stream", error)):
                raise
        else:
            return query
    raise AssertionError(f"its source came too late {_MOST_LATE_STARTS} times in a row")
