"""A function over rows: one that fails costs its own row, and its neighbours are not even asked twice without need."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import pyarrow as pa

from streamhouse.spark.pipelines.functions import Mark, Unit, each_batch, each_row, mark_of
from streamhouse.spark.pipelines.isolation import FAILURE, IsolatedFunction

ORIGIN = "_origin"
_FAILURE_FIELD = pa.field(FAILURE, pa.struct([("error", pa.string()), ("row", pa.string())]))
OUTPUT = pa.schema([("half", pa.int64()), (ORIGIN, pa.string()), _FAILURE_FIELD])


def rows_in(*numbers: int | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"number": pa.array(numbers, pa.int64()), ORIGIN: [f"record {number}" for number in numbers]}
    )


def run(function: Any, unit: Unit, *batches: pa.RecordBatch) -> list[dict[str, Any]]:
    isolated = IsolatedFunction(function, Mark(unit=unit, schema=""), OUTPUT, ORIGIN)
    return [row for batch in isolated(batches) for row in batch.to_pylist()]


def halve_row(row: dict[str, Any]) -> Any:
    return {"half": row["number"] // 2}


def test_a_row_function_keeps_the_origin_of_each_row() -> None:
    assert run(halve_row, Unit.ROW, rows_in(2, 4)) == [
        {"half": 1, ORIGIN: "record 2", FAILURE: None},
        {"half": 2, ORIGIN: "record 4", FAILURE: None},
    ]


def test_a_row_function_may_make_no_row_or_several() -> None:
    def repeat(row: dict[str, Any]) -> Any:
        return None if row["number"] == 0 else [{"half": row["number"]}] * row["number"]

    assert [(row["half"], row[ORIGIN]) for row in run(repeat, Unit.ROW, rows_in(0, 1, 2))] == [
        (1, "record 1"),
        (2, "record 2"),
        (2, "record 2"),
    ]


def test_a_row_for_which_it_raises_becomes_a_failure_with_the_row_as_it_was() -> None:
    def spoil(row: dict[str, Any]) -> Any:
        number = row.pop("number")
        return {"half": 6 // number}

    first, failed, last = run(spoil, Unit.ROW, rows_in(1, 0, 3))

    assert (first["half"], last["half"]) == (6, 2)
    assert failed["half"] is None
    assert failed[ORIGIN] == "record 0"
    assert failed[FAILURE]["error"].startswith("ZeroDivisionError: ")
    assert json.loads(failed[FAILURE]["row"]) == {"number": 0}


def test_what_does_not_fit_the_schema_fails_alone() -> None:
    def mixed(row: dict[str, Any]) -> Any:
        return {"half": "many"} if row["number"] == 2 else {"half": row["number"]}

    first, failed, last = run(mixed, Unit.ROW, rows_in(1, 2, 3))

    assert (first["half"], last["half"]) == (1, 3)
    assert failed[FAILURE]["error"].startswith("Arrow")


def test_a_column_that_was_not_declared_and_a_result_that_is_no_row_are_failures() -> None:
    (unknown,) = run(lambda row: {"hlaf": 1}, Unit.ROW, rows_in(1))
    (nothing_like_a_row,) = run(lambda row: 7, Unit.ROW, rows_in(1))

    assert "hlaf" in unknown[FAILURE]["error"]
    assert "returned int" in nothing_like_a_row[FAILURE]["error"]


def test_a_batch_function_sees_whole_batches_and_never_the_origin() -> None:
    seen: list[tuple[int, list[str]]] = []

    def halve(frame: pd.DataFrame) -> pd.DataFrame:
        seen.append((len(frame), list(frame.columns)))
        return pd.DataFrame({"half": frame["number"] // 2})

    rows = run(halve, Unit.BATCH, rows_in(2, 4), rows_in(6))

    assert [row["half"] for row in rows] == [1, 2, 3]
    assert seen == [(2, ["number"]), (1, ["number"])]


def test_only_a_batch_that_fails_is_tried_row_by_row() -> None:
    sizes: list[int] = []

    def check(frame: pd.DataFrame) -> pd.DataFrame:
        sizes.append(len(frame))
        if (frame["number"] == 13).any():
            raise ValueError("thirteen")
        return pd.DataFrame({"half": frame["number"]})

    rows = run(check, Unit.BATCH, rows_in(1, 13, 3), rows_in(4, 5))

    assert [row["half"] for row in rows] == [1, None, 3, 4, 5]
    assert rows[1][FAILURE]["error"] == "ValueError: thirteen"
    assert rows[1][ORIGIN] == "record 13"
    assert sizes == [3, 1, 1, 1, 2]


def test_rows_without_an_origin_are_run_as_well() -> None:
    output = pa.schema([("half", pa.int64()), _FAILURE_FIELD])
    batch = pa.RecordBatch.from_pydict({"number": [2, None]})
    isolated = IsolatedFunction(halve_row, Mark(unit=Unit.ROW, schema=""), output, None)

    good, failed = [row for made in isolated([batch]) for row in made.to_pylist()]

    assert good == {"half": 1, FAILURE: None}
    assert json.loads(failed[FAILURE]["row"]) == {"number": None}


def test_marks_are_found_on_functions_and_leave_them_callable() -> None:
    @each_row("half BIGINT")
    def by_row(row: dict[str, Any]) -> dict[str, Any]:
        return {"half": row["number"] // 2}

    @each_batch("half BIGINT")
    def by_batch(frame: pd.DataFrame) -> pd.DataFrame:
        return frame

    assert mark_of(by_row) == Mark(unit=Unit.ROW, schema="half BIGINT")
    assert mark_of(by_batch) == Mark(unit=Unit.BATCH, schema="half BIGINT")
    assert mark_of(halve_row) is None
    assert by_row({"number": 4}) == {"half": 2}
