"""A pipeline's run in numbers: added up from its micro-batches, and shown as tables or JSON."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from streamhouse.cli.console import print_facts, print_line, print_table
from streamhouse.spark.pipelines.model import Guarantee, Pipeline
from streamhouse.spark.pipelines.progress import Progress
from streamhouse.spark.pipelines.registry import RUNNING, QueryState, RunRecord

DEAD_LETTER = "dead_letter"

QUERY_HEADINGS = ("sink", "guarantee", "batch", "rows in", "rows out", "rows/s", "batch ms", "lag", "watermark", "late")


class RunReport:
    """What the registry's entry and the view are made from."""

    def __init__(self, pipeline: Pipeline, *, pid: int, now_ms: int) -> None:
        self._pipeline = pipeline
        self._pid = pid
        self._started_at_ms = now_ms
        self._dead_letter_topic = None if pipeline.dead_letter is None else pipeline.dead_letter.topic
        self._queries: dict[str, QueryState] = {}
        self.refused_rows = 0

    def begin(self, guarantees: Mapping[str, Guarantee]) -> None:
        self._queries = {name: QueryState(query=name, guarantee=each.value) for name, each in guarantees.items()}

    def add(self, batch: Progress) -> None:
        before = self._queries[batch.query]
        self._queries[batch.query] = QueryState(
            query=batch.query,
            guarantee=before.guarantee,
            batch_id=batch.batch_id,
            at=batch.at,
            rows_per_second=batch.rows_per_second,
            batch_ms=batch.batch_ms,
            watermark=batch.watermark or before.watermark,
            state_rows=batch.state_rows,
            lag=dict(batch.lag),
            input_rows=before.input_rows + batch.input_rows,
            output_rows=before.output_rows + batch.output_rows,
            late_rows=before.late_rows + batch.late_rows,
        )

    def record(self, now_ms: int, *, state: str = RUNNING, error: str | None = None) -> RunRecord:
        letters = self._queries.get(DEAD_LETTER)
        return RunRecord(
            name=self._pipeline.name,
            file=self._pipeline.file,
            master=self._pipeline.master,
            pid=self._pid,
            started_at_ms=self._started_at_ms,
            updated_at_ms=now_ms,
            state=state,
            error=error,
            dead_letters=(letters.output_rows if letters else 0) + self.refused_rows,
            dead_letter_topic=self._dead_letter_topic,
            queries=list(self._queries.values()),
        )


def record_as_json(record: RunRecord) -> dict[str, Any]:
    return msgspec.to_builtins(record)  # type: ignore[no-any-return]


def summary_row(record: RunRecord) -> tuple[object, ...]:
    rows = sum(query.output_rows for query in record.queries if query.query != DEAD_LETTER)
    started = _time(record.started_at_ms)
    return (record.name, record.state, record.pid, started, rows, record.dead_letters, record.file)


def query_row(query: QueryState) -> tuple[object, ...]:
    return (
        query.query,
        query.guarantee,
        query.batch_id,
        query.input_rows,
        query.output_rows,
        round(query.rows_per_second),
        query.batch_ms,
        sum(query.lag.values()) if query.lag else None,
        query.watermark,
        query.late_rows,
    )


def print_record(record: RunRecord) -> None:
    facts: list[tuple[str, object]] = [
        ("pipeline", record.name),
        ("state", record.state),
        ("file", record.file),
        ("master", record.master),
        ("pid", record.pid),
        ("started", _time(record.started_at_ms)),
        ("updated", _time(record.updated_at_ms)),
        ("dead letters", record.dead_letters),
    ]
    if record.error:
        facts.append(("error", record.error))
    print_facts(facts)
    if record.queries:
        print_line("")
        print_table(QUERY_HEADINGS, [query_row(query) for query in record.queries])


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
