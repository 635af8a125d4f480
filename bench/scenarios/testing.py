"""(g) `streamhouse.testing.Broker()`: how long a test waits for its broker, and for its first record."""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections.abc import Iterator

from bench.native import finished
from bench.rows import Row, at_most
from bench.run import Run

STARTS = 5


def rows(run: Run) -> Iterator[Row]:
    run.say("start of the test broker")
    measured: list[dict[str, float]] = []
    for _ in range(max(run.plan.repeats, 1)):
        command = [sys.executable, "-m", "bench.broker_start", str(STARTS)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        measured.append(finished(process))

    def median(key: str) -> float:
        return statistics.median(one[key] for one in measured)

    yield Row(
        scenario="testing",
        name="Broker() to ready, the first in its process",
        figure=median("first_start_seconds"),
        unit="s",
        goal=at_most(0.3, "s"),
        details={"import_seconds": median("import_seconds")},
    )
    yield Row(
        scenario="testing",
        name="Broker() to ready, the next ones",
        figure=median("next_start_seconds"),
        unit="s",
        goal=at_most(0.3, "s"),
        details={"stop_seconds": median("stop_seconds")},
    )
    yield Row(
        scenario="testing",
        name="Broker() to the first acknowledged record",
        figure=median("first_record_seconds"),
        unit="s",
    )
