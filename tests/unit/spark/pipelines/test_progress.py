"""Spark's progress reports, reduced to what people ask for."""

from __future__ import annotations

from typing import Any

from streamhouse.spark.pipelines.progress import from_spark, positions_of


def report(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "batchId": 7,
        "timestamp": "2026-11-01T08:00:00.000Z",
        "numInputRows": 100,
        "processedRowsPerSecond": 49.96,
        "durationMs": {"triggerExecution": 2000},
        "eventTime": {"watermark": "2026-11-01T07:50:00.000Z"},
        "stateOperators": [
            {"numRowsTotal": 10, "numRowsDroppedByWatermark": 2},
            {"numRowsTotal": 5, "numRowsDroppedByWatermark": 0},
        ],
        "sources": [
            {"description": "streamhouse", "endOffset": {"orders": {"0": 50, "1": 40}, "@start": {"orders": {"0": 0}}}},
            {"description": "FileStreamSource", "endOffset": {"logOffset": 3}},
        ],
        "observedMetrics": {"output": {"rows": 21}},
    }
    return {**whole, **changes}


def test_a_report_becomes_a_few_numbers() -> None:
    progress = from_spark("revenue", report(), {"orders": {"0": 60, "1": 40}})

    assert (progress.query, progress.batch_id) == ("revenue", 7)
    assert (progress.input_rows, progress.output_rows, progress.rows_per_second) == (100, 21, 50.0)
    assert (progress.batch_ms, progress.watermark) == (2000, "2026-11-01T07:50:00.000Z")
    assert (progress.state_rows, progress.late_rows) == (15, 2)
    assert progress.lag == {"orders": 10}
    assert progress.as_json()["lag"] == {"orders": 10}


def test_lag_is_told_only_of_topics_whose_end_is_known() -> None:
    assert positions_of(report()) == {"orders": {"0": 50, "1": 40}}
    assert from_spark("revenue", report(), {}).lag == {}
    assert from_spark("revenue", report(), {"orders": {"0": 45}}).lag == {"orders": 0}, "a log that was cut is no lag"


def test_a_query_without_event_time_state_or_rows_has_none_of_them() -> None:
    plain = report(
        eventTime={"watermark": "1970-01-01T00:00:00.000Z"}, stateOperators=[], observedMetrics={}, sources=[]
    )

    progress = from_spark("plain", plain, {})

    assert (progress.watermark, progress.state_rows, progress.late_rows, progress.output_rows) == (None, 0, 0, 0)
