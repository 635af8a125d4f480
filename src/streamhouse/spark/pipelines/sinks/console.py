"""Rows onto the terminal: for trying things out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from streamhouse.spark.pipelines.model import ConsoleSink
from streamhouse.spark.pipelines.sinks.writer import BatchId, Refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RowPrinter = Callable[[str, int, list[dict[str, object]], int], None]
"""Of the sink, the batch, the first rows and how many there are in all."""


class ConsoleWriter:
    def __init__(self, sink: ConsoleSink, show: RowPrinter) -> None:
        self._sink = sink
        self._show = show

    def shape(self, rows: DataFrame) -> DataFrame:
        return rows

    def write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        # All partitions are run, also those whose rows are not shown.
        rows = batch.toLocalIterator()
        shown = [row.asDict(recursive=True) for row in islice(rows, self._sink.max_rows)]
        count = len(shown) + sum(1 for _ in rows)
        if count:
            self._show(self._sink.name, batch_id.number, shown, count)
        return ()
