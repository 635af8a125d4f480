"""Streaming queries that are run to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

# Spark gives a source's Python process 10 s to start, which no setting changes and a busy machine exceeds.
_LATE_START = "Python worker failed to connect back"
_MOST_LATE_STARTS = 10


def run_to_end(writer: DataStreamWriter, path: str | None = None) -> StreamingQuery:
    """Until everything that is there is written. One whose source came too late is started again."""
    from pyspark.errors import StreamingQueryException

    for _ in range(_MOST_LATE_STARTS):
        query = writer.trigger(availableNow=True).start(path)
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            if _LATE_START not in str(error):
                raise
        else:
            return query
    raise AssertionError(f"{_MOST_LATE_STARTS} times in a row: {_LATE_START}")
