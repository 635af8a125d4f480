"""The bench of the console runs: its quick form measures something positive in a real browser and writes it down."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]


def test_the_quick_form_measures_first_paint_and_the_live_tail(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench.console", "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)

    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "console-results.json").read_text())["rows"]
    assert len(rows) == 4
    for row in rows:
        assert row["figure"] > 0, row
    assert rows[1]["limit"] > 0, "many topics are measured beside few"
    assert rows[3]["limit"] > 0, "what the page received beside what was stored"
