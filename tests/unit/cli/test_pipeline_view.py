"""What people see while a pipeline runs: a table on a terminal, and never a row of data that was meant for a file."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr

import pytest
from rich.console import Console
from rich.live import Live

from streamhouse.cli.pipeline_report import QUERY_HEADINGS, RunReport
from streamhouse.cli.pipeline_view import LiveView, open_view
from streamhouse.spark.pipelines.model import Guarantee
from streamhouse.spark.pipelines.parsing import parse_pipeline
from streamhouse.spark.pipelines.progress import Progress
from streamhouse.spark.pipelines.registry import ENDED

_TEXT = """
name: revenue
checkpoint: c
dead_letter: bad
sources: [{name: orders, topic: orders, format: raw}]
sinks: [{name: out, from: orders, topic: revenue, format: raw}]
"""
_WIDTH = 160
_HIDE_CURSOR = "\x1b[?25l"
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def report() -> RunReport:
    report = RunReport(parse_pipeline(_TEXT, "revenue.yaml", {}), pid=77, now_ms=0)
    report.begin({"out": Guarantee.EXACTLY_ONCE, "dead_letter": Guarantee.AT_LEAST_ONCE})
    return report


def batch(number: int, query: str = "out", *, output_rows: int = 400, watermark: str | None = None) -> Progress:
    return Progress(
        query=query,
        batch_id=number,
        at="2026-11-01T08:10:00.000Z",
        input_rows=1000,
        output_rows=output_rows,
        rows_per_second=512.4,
        batch_ms=1953,
        watermark=watermark,
        late_rows=6,
        state_rows=3,
        lag={"orders": 70, "returns": 5},
    )


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """For the place of stderr."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(_WIDTH))
    return Terminal()


def rows_of(table: str) -> dict[str, dict[str, str]]:
    """Cells by sink and heading."""
    lines = [line.split() for line in table.splitlines() if line.strip()]
    first = next(number for number, words in enumerate(lines) if "guarantee" in words) + 2
    return {words[0]: dict(zip(QUERY_HEADINGS, words, strict=True)) for words in lines[first:]}


def test_the_table_on_a_terminal_has_a_row_for_each_query_with_its_last_batch_and_its_sums(report: RunReport) -> None:
    console = Console(file=io.StringIO(), record=True, width=_WIDTH, markup=False, highlight=False, emoji=False)
    report.add(batch(3))
    report.add(batch(4, watermark="2026-11-01T08:00:00.000Z"))
    report.add(batch(9, "dead_letter", output_rows=1200))
    report.refused_rows = 34

    with Live(console=console, auto_refresh=False) as live:
        LiveView(live).show(report.record(5000))

    shown = console.export_text()
    assert "revenue running, 1,234 dead letters; Ctrl-C stops it" in shown
    assert rows_of(shown) == {
        "out": {
            "sink": "out",
            "guarantee": "exactly-once",
            "batch": "4",
            "rows in": "2000",
            "rows out": "800",
            "rows/s": "512",
            "batch ms": "1953",
            "lag": "75",
            "watermark": "2026-11-01T08:00:00.000Z",
            "late": "12",
        },
        "dead_letter": {
            "sink": "dead_letter",
            "guarantee": "at-least-once",
            "batch": "9",
            "rows in": "1000",
            "rows out": "1200",
            "rows/s": "512",
            "batch ms": "1953",
            "lag": "75",
            "watermark": "-",
            "late": "6",
        },
    }


def test_a_terminal_gets_the_table_again_for_every_change_and_keeps_the_last(
    report: RunReport, terminal: Terminal
) -> None:
    with redirect_stderr(terminal), open_view(as_json=False) as view:
        view.note("starting \x1b[2JSpark")
        report.add(batch(3))
        view.batch("revenue", batch(3))
        view.show(report.record(1000))
        report.add(batch(4))
        view.show(report.record(2000, state=ENDED))

    assert terminal.getvalue().startswith(_HIDE_CURSOR), "it was drawn as on a terminal"
    frames = _CONTROL.sub("", terminal.getvalue())
    assert "starting \\x1b[2JSpark" in frames
    assert frames.index("revenue running, 0 dead letters; Ctrl-C stops it") < frames.index("revenue ended, 0 dead")
    assert "Ctrl-C" not in frames[frames.index("revenue ended") :]
    assert rows_of(frames[frames.rindex("revenue ended") :])["out"]["rows in"] == "2000"


def test_rows_of_a_console_sink_go_where_stdout_goes_while_the_table_is_on_the_terminal(
    report: RunReport, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    long = {"text": "x" * 2 * _WIDTH}
    with redirect_stderr(terminal), open_view(as_json=False) as view:
        view.show(report.record(1000))
        view.rows("look", 3, [{"id": 1}, long], 5)

    assert capsys.readouterr().out == f'{{"id": 1}}\n{json.dumps(long)}\n', "as it is, not folded to the terminal"
    assert "look: batch 3, 5 rows, the first 2" in terminal.getvalue()
    assert '"id": 1' not in terminal.getvalue()


def test_programs_get_json_lines_even_if_stderr_is_a_terminal(
    report: RunReport, terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    with redirect_stderr(terminal), open_view(as_json=True) as view:
        view.note("starting")
        view.batch("revenue", batch(3, watermark="2026-11-01T08:00:00.000Z"))
        view.show(report.record(1000))

    (line,) = capsys.readouterr().out.splitlines()
    told = json.loads(line)
    assert (told["pipeline"], told["query"], told["batch_id"]) == ("revenue", "out", 3)
    assert (told["rows_per_second"], told["batch_ms"]) == (512.4, 1953)
    assert (told["lag"], told["watermark"]) == ({"orders": 70, "returns": 5}, "2026-11-01T08:00:00.000Z")
    assert terminal.getvalue() == ""
