"""Whether the pipeline's two results are what the orders say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from demo.failure import DemoFailed
from demo.orders import Event
from demo.pipeline import Pipeline
from demo.revenue import ResultRow, Sales, by_minute, by_region, expected_of, read_table, read_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome:
    """`rows` is how many pairs of minute and region have a result. The seconds are since Spark was started: until the
    first result was written, and until the last order was in it."""

    orders: int
    rows: int
    dead_letters: int
    first_seconds: float
    seconds: float
    regions: Mapping[tuple[str, str], Sales]


def compare(
    pipeline: Pipeline, first_seconds: float, seconds: float, bootstrap: str, events: Sequence[Event]
) -> PipelineOutcome:
    """DemoFailed names where a result is another than the orders'."""
    expected = expected_of(events)
    in_topic = read_topic(bootstrap)
    _check("topic", in_topic, expected)
    _check("Delta table", read_table(pipeline.lake), expected)
    return PipelineOutcome(
        orders=len(events),
        rows=len(in_topic),
        dead_letters=pipeline.dead_letters,
        first_seconds=first_seconds,
        seconds=seconds,
        regions=by_region(expected),
    )


def _check(place: str, rows: Sequence[ResultRow], sales: Sequence[ResultRow]) -> None:
    found, expected = by_minute(rows), by_minute(sales)
    if found != expected:
        different = sorted(key for key in found.keys() | expected.keys() if found.get(key) != expected.get(key))
        raise DemoFailed(f"the revenue of {different[:3]} in the {place} is not what the orders say")
