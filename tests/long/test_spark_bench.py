"""The benchmarks of Spark run: their quick form measures something positive beside a limit, and writes it down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]
SCENARIOS = ("source", "sink", "jobs", "floor")


def run_bench(out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.spark", "--quick", "--out", str(out), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=280)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_quick_form_measures_and_writes_down(scenario: str, tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", scenario, "--scale", "0.2")

    assert done.returncode == 0, done.stdout + done.stderr
    rows: list[dict[str, Any]] = json.loads((tmp_path / "spark-results.json").read_text())["rows"]
    measured = [row for row in rows if "Kafka source" not in row["name"]]
    assert measured
    for row in measured:
        assert row["scenario"] == scenario
        assert row["figure"] > 0, row
        assert scenario == "floor" or row["ratio"] == row["figure"] / row["limit"]
        assert row["name"] in done.stdout


def test_a_scenario_that_does_not_exist_is_refused_with_the_ones_that_do(tmp_path: Path) -> None:
    done = run_bench(tmp_path, "--only", "nonsense")

    assert done.returncode == 2
    assert "'nonsense' is not a scenario; there are source, sink, jobs, floor" in " ".join(done.stderr.split())
