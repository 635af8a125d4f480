"""What `pipeline` shows of a run: sums of its micro-batches, as tables, lines and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamhouse.cli.main import run
from streamhouse.cli.pipeline_report import RunReport, print_record, record_as_json
from streamhouse.cli.pipeline_view import open_view
from streamhouse.spark.pipelines.model import Guarantee
from streamhouse.spark.pipelines.parsing import parse_pipeline
from streamhouse.spark.pipelines.progress import Progress
from streamhouse.spark.pipelines.registry import FAILED, Registry

_TEXT = """
name: revenue
checkpoint: c
dead_letter: orders-dead
sources: [{name: orders, topic: orders, format: raw}]
sinks: [{name: out, from: orders, topic: revenue, format: raw}]
"""


def batch(query: str, number: int, **changes: object) -> Progress:
    values: dict[str, object] = {
        "input_rows": 10,
        "output_rows": 4,
        "rows_per_second": 5.0,
        "batch_ms": 2000,
        "watermark": "2026-11-01T08:00:00.000Z",
        "late_rows": 1,
        "state_rows": 3,
        "lag": {"orders": 7},
    }
    values |= changes
    return Progress(query=query, batch_id=number, at="2026-11-01T08:10:00.000Z", **values)  # type: ignore[arg-type]


@pytest.fixture
def report() -> RunReport:
    report = RunReport(parse_pipeline(_TEXT, "shop/revenue.yaml", {}), pid=77, now_ms=0)
    report.begin({"out": Guarantee.EXACTLY_ONCE, "dead_letter": Guarantee.EXACTLY_ONCE})
    return report


def test_a_run_is_the_sum_of_its_batches_and_the_last_of_them(report: RunReport) -> None:
    report.add(batch("out", 3))
    report.add(batch("out", 4, batch_ms=100, lag={"orders": 0}, watermark=None))
    report.add(batch("dead_letter", 2, output_rows=2))
    report.refused_rows = 3

    record = report.record(5000)

    out = record.queries[0]
    assert (out.batch_id, out.batch_ms, out.lag) == (4, 100, {"orders": 0})
    assert (out.input_rows, out.output_rows, out.late_rows) == (20, 8, 2)
    assert out.watermark == "2026-11-01T08:00:00.000Z", "a batch without rows does not take it back"
    assert (record.dead_letters, record.dead_letter_topic) == (5, "orders-dead")
    assert (record.pid, record.updated_at_ms, record.state) == (77, 5000, "running")


def test_status_shows_the_run_and_why_it_failed(report: RunReport, capsys: pytest.CaptureFixture[str]) -> None:
    report.add(batch("out", 3))

    print_record(report.record(1000, state=FAILED, error="the node\x1b[2J is gone"))

    shown = capsys.readouterr().out
    assert "failed" in shown
    assert "the node\\x1b[2J is gone" in shown
    assert "exactly-once" in shown
    assert "shop/revenue.yaml" in shown
    assert record_as_json(report.record(1000))["queries"][0]["lag"] == {"orders": 7}


def test_a_batch_is_a_json_object_or_a_line_of_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with open_view(as_json=True) as view:
        view.note("starting")
        view.batch("revenue", batch("out", 3))
        view.rows("look", 3, [{"id": 1}], 2)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["pipeline"], first["query"], first["batch_id"], first["lag"]) == ("revenue", "out", 3, {"orders": 7})
    assert second == {"sink": "look", "batch_id": 3, "rows": [{"id": 1}], "row_count": 2}

    with open_view(as_json=False) as view:
        view.note("starting")
        view.batch("revenue", batch("out", 3))
        view.batch("revenue", batch("out", 4, input_rows=0, output_rows=0))
        view.rows("look", 3, [{"id": 1}], 2)
    captured = capsys.readouterr()
    assert captured.out == '{"id": 1}\n', "data alone goes to stdout"
    assert captured.err.splitlines() == [
        "starting",
        "out: batch 3, 10 rows in, 4 out, 2000 ms, lag 7",
        "look: batch 3, 2 rows, the first 1",
    ]


def test_list_and_status_and_stop_tell_of_runs_that_are_over(
    report: RunReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAMHOUSE_STATE_DIR", str(tmp_path))
    assert run(["pipeline", "list"]) == 0
    assert "no pipelines yet" in capsys.readouterr().out

    with Registry(tmp_path / "pipelines").register("revenue") as registration:
        registration.write(report.record(0, state=FAILED, error="no node"))

    assert run(["pipeline", "list"]) == 0
    assert "failed" in capsys.readouterr().out
    assert run(["pipeline", "status", "revenue"]) == 0
    assert "no node" in capsys.readouterr().out
    assert run(["pipeline", "stop", "revenue"]) == 0
    assert "was not running" in capsys.readouterr().out
    assert run(["pipeline", "stop", "revenu"]) == 1
    assert "there is no pipeline 'revenu'" in capsys.readouterr().err


def test_a_file_with_mistakes_is_told_line_by_line_without_starting_spark(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(_TEXT.replace("checkpoint", "chekpoint"))

    assert run(["pipeline", "validate", str(file)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{file}:2: a pipeline needs 'checkpoint'",
        f"{file}:3: a pipeline has no 'chekpoint'; did you mean 'checkpoint'?",
    ]
    assert run(["pipeline", "validate", str(file), "--json"]) == 1
    assert [each["line"] for each in json.loads(capsys.readouterr().out)["problems"]] == [2, 3]
    assert run(["pipeline", "run", str(file)]) == 1
    assert "needs 'checkpoint'" in capsys.readouterr().err
