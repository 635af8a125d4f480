"""What every sink does with a micro-batch, and what it is told about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchId:
    """A micro-batch that comes again after a crash has the same rows and the same id. `sink_id` is as old as the
    checkpoint: who deletes that starts anew."""

    sink_id: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A row, as JSON, that the sink's own store would not take, and why."""

    row: str
    error: str


class BatchWriter(Protocol):
    def shape(self, rows: DataFrame) -> DataFrame:
        """The rows as they are written; also what checks a pipeline before it runs. AnalysisException or InvalidConfig
        if the sink cannot take them."""

    def write(self, batch: DataFrame, batch_id: BatchId) -> Sequence[Refusal]:
        """Runs the batch's plan exactly once, and completely, whatever is known of earlier tries: the state of
        aggregations and joins is written by running it."""
