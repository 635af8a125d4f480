"""Runs a marked function over Arrow batches: a row that it fails for becomes a failure, not an exception."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa

from streamhouse.spark.pipelines.functions import Function, Mark, Unit

FAILURE = "_failure"
FAILURE_TYPE = "STRUCT<error: STRING, row: STRING>"
"""`row` is the failed row as JSON, without its origin."""

_LONGEST_ERROR = 1000
Row = dict[str, Any]


class IsolatedFunction:
    """A function for `mapInArrow`. `origin` is the column that stays with the rows made of a row, if there is one."""

    def __init__(self, function: Function, mark: Mark, output: pa.Schema, origin: str | None) -> None:
        self._function = function
        self._mark = mark
        self._output = output
        self._origin = origin
        self._columns = [name for name in output.names if name not in (origin, FAILURE)]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from self._work(batch)

    def _work(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        if self._mark.unit is Unit.BATCH:
            try:
                yield self._whole_batch(batch)
                return
            except Exception:
                # Which row it was shows when each is tried alone; only such a batch pays for that.
                pass
        yield self._row_by_row(batch)

    # -- all at once --------------------------------------------------------------------------------------------

    def _whole_batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        frame = self._function(self._without_origin(batch).to_pandas())
        made = pa.Table.from_pandas(frame, schema=self._made_schema(), preserve_index=False)
        return self._padded(made)

    def _padded(self, made: pa.Table) -> pa.RecordBatch:
        """No row of it failed, and which row it was made of is not known."""
        columns = [
            made.column(field.name).combine_chunks() if field.name in self._columns else pa.nulls(len(made), field.type)
            for field in self._output
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self._output)

    # -- one after the other ------------------------------------------------------------------------------------

    def _row_by_row(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        run = self._run_row if self._mark.unit is Unit.ROW else self._run_single_row_batch
        made = [self._attempt(run, number, row, batch) for number, row in enumerate(batch.to_pylist())]
        try:
            return self._as_batch(row for rows in made for row in rows)
        except Exception:
            # Somebody's values do not fit the declared schema; while each row's are known, they can be told apart.
            fitting = (self._fitting(number, rows, batch) for number, rows in enumerate(made))
            return self._as_batch(row for rows in fitting for row in rows)

    def _attempt(
        self, run: Callable[[Row, pa.RecordBatch], list[Row]], number: int, row: Row, batch: pa.RecordBatch
    ) -> list[Row]:
        kept = {self._origin: row.pop(self._origin)} if self._origin else {}
        try:
            return [{**made, **kept} for made in run(row, batch.slice(number, 1))]
        except Exception as error:
            return [self._failure(error, number, batch)]

    def _fitting(self, number: int, rows: list[Row], batch: pa.RecordBatch) -> list[Row]:
        try:
            self._as_batch(rows)
        except Exception as error:
            return [self._failure(error, number, batch)]
        return rows

    def _failure(self, error: Exception, number: int, batch: pa.RecordBatch) -> Row:
        """With the row as it was: the function may have changed what it was given."""
        row = batch.slice(number, 1).to_pylist()[0]
        kept = {self._origin: row.pop(self._origin)} if self._origin else {}
        return {**kept, FAILURE: {"error": _describe(error), "row": json.dumps(row, default=str)}}

    def _run_row(self, row: Row, _: pa.RecordBatch) -> list[Row]:
        match self._function(row):
            case None:
                return []
            case dict() as one:
                return [self._checked(one)]
            case Iterable() as several:
                return [self._checked(one) for one in several]
            case other:
                raise TypeError(
                    f"{self._function.__name__} returned {type(other).__name__}, not a dict, a list or None"
                )

    def _run_single_row_batch(self, _: Row, single: pa.RecordBatch) -> list[Row]:
        frame = self._function(self._without_origin(single).to_pandas())
        return pa.Table.from_pandas(frame, schema=self._made_schema(), preserve_index=False).to_pylist()

    def _checked(self, row: Row) -> Row:
        unknown = row.keys() - set(self._columns)
        if unknown:
            raise ValueError(f"{self._function.__name__} returned {sorted(unknown)}, not in its schema {self._columns}")
        return row

    # -- shapes -------------------------------------------------------------------------------------------------

    def _as_batch(self, rows: Iterable[Row]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(list(rows), schema=self._output)

    def _made_schema(self) -> pa.Schema:
        return pa.schema([self._output.field(name) for name in self._columns])

    def _without_origin(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.drop_columns([self._origin]) if self._origin else batch


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST_ERROR]
