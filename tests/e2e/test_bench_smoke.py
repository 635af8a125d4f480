"""The benchmarks run: their quick form measures something positive and writes it down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]


def run_bench(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "--quick", "--out", str(out), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=240)


def rows_of(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((out / "results.json").read_text())["rows"]
    return rows


def test_the_quick_form_measures_each_figure_beside_a_limit_and_writes_both_down(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "produce,requests,latency")

    assert done.returncode == 0, done.stdout + done.stderr
    rows = rows_of(tmp_path)
    assert {row["scenario"] for row in rows} == {"produce", "requests", "latency"}
    for row in rows:
        assert row["figure"] > 0, row
        assert row["limit"] > 0, row
        assert row["ratio"] == row["figure"] / row["limit"]
        assert row["name"] in done.stdout


def test_the_result_names_the_machine_and_the_commit_it_belongs_to(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "c")

    assert done.returncode == 0, done.stdout + done.stderr
    facts = json.loads((tmp_path / "results.json").read_text())["machine"]
    assert facts["cores"] > 0
    assert {"date", "commit", "python", "librdkafka", "processor"} <= facts.keys()


def test_a_scenario_that_does_not_exist_is_refused_with_the_ones_that_do(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "nonsense")

    assert done.returncode == 2
    assert "'nonsense' is not a scenario" in done.stderr
    assert "consume" in done.stderr
