"""What a pipeline's Python functions are marked with, so that one bad row costs that row and nothing else.

    from streamhouse.spark.pipelines.functions import each_batch, each_row

    @each_row("order_id STRING, score DOUBLE")
    def score(row):
        return {"order_id": row["order_id"], "score": row["total_cents"] / 100}

A function without a mark is called once, on the driver, with DataFrames, and returns one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Unit(Enum):
    ROW = "row"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """`schema` is Spark DDL of what the function returns."""

    unit: Unit
    schema: str


_ATTRIBUTE = "__streamhouse_mark__"
Function = Callable[..., Any]


def each_row(schema: str) -> Callable[[Function], Function]:
    """For a function from a row, as a dict, to a dict, a list of dicts, or None for no row at all."""
    return _marker(Mark(unit=Unit.ROW, schema=schema))


def each_batch(schema: str) -> Callable[[Function], Function]:
    """For a function from a pandas DataFrame to another one. Rows must not depend on their neighbours: after an error
    the function is called again for every row of the batch alone, to find out which of them it was."""
    return _marker(Mark(unit=Unit.BATCH, schema=schema))


def mark_of(function: object) -> Mark | None:
    mark = getattr(function, _ATTRIBUTE, None)
    return mark if isinstance(mark, Mark) else None


def _marker(mark: Mark) -> Callable[[Function], Function]:
    def put(function: Function) -> Function:
        setattr(function, _ATTRIBUTE, mark)
        return function

    return put
