"""How far a pipeline's queries are: Spark's progress reports in our own few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

OUTPUT_METRIC = "output"
OUTPUT_ROWS = "rows"

_NO_WATERMARK = "1970-01-01T00:00:00.000Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One micro-batch of one query. `lag` is how many records each topic still holds for it, where that is known;
    `late_rows` were dropped because they came after the watermark."""

    query: str
    batch_id: int
    at: str
    input_rows: int
    output_rows: int
    rows_per_second: float
    batch_ms: int
    watermark: str | None
    late_rows: int
    state_rows: int
    lag: Mapping[str, int]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


Offsets = Mapping[str, Mapping[str, int]]
"""topic → partition → offset, as our source reports them."""


def from_spark(query: str, report: Mapping[str, Any], latest: Offsets) -> Progress:
    """`report` is Spark's StreamingQueryProgress as JSON; `latest` are the ends of the topics now."""
    operators: Sequence[Mapping[str, Any]] = report.get("stateOperators", ())
    watermark = report.get("eventTime", {}).get("watermark")
    return Progress(
        query=query,
        batch_id=report["batchId"],
        at=report["timestamp"],
        input_rows=report["numInputRows"],
        output_rows=report.get("observedMetrics", {}).get(OUTPUT_METRIC, {}).get(OUTPUT_ROWS, 0),
        rows_per_second=round(report.get("processedRowsPerSecond") or 0.0, 1),
        batch_ms=report.get("durationMs", {}).get("triggerExecution", 0),
        watermark=None if watermark == _NO_WATERMARK else watermark,
        late_rows=sum(operator.get("numRowsDroppedByWatermark", 0) for operator in operators),
        state_rows=sum(operator.get("numRowsTotal", 0) for operator in operators),
        lag=_lag(positions_of(report), latest),
    )


def positions_of(report: Mapping[str, Any]) -> Offsets:
    """How far the query has read each partition; sources that are not topics, and what our source notes beside its
    offsets, are left out."""
    positions: dict[str, dict[str, int]] = {}
    for source in report.get("sources", ()):
        end = source.get("endOffset")
        if isinstance(end, dict):
            for topic, partitions in end.items():
                if isinstance(partitions, dict) and all(isinstance(offset, int) for offset in partitions.values()):
                    positions.setdefault(topic, {}).update(partitions)
    return positions


def _lag(positions: Offsets, latest: Offsets) -> dict[str, int]:
    return {
        topic: sum(max(0, latest[topic].get(partition, offset) - offset) for partition, offset in partitions.items())
        for topic, partitions in positions.items()
        if topic in latest
    }
