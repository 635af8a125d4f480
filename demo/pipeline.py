"""The shipped revenue pipeline over the demo's orders: run as a user would run it, and watched."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time  # noqa: TID251 - how long a real process takes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console

from demo.failure import DemoFailed
from demo.orders import Event
from demo.progress import Meter, meter
from demo.revenue import RESULT_TOPIC, Sales, by_region, expected_of, read_result

FILE = Path(__file__).parents[1] / "examples" / "revenue.yaml"
DEAD_LETTER_TOPIC = "orders-dead"
_HUNG_SECONDS = 600.0
_SHOWN_LOG_LINES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineOutcome:
    """`rows` is how many pairs of minute and region have a result. The seconds are those of a whole run, Spark's start
    among them."""

    orders: int
    rows: int
    dead_letters: int
    seconds: float
    regions: Mapping[tuple[str, str], Sales]


def why_not() -> str:
    """Why a pipeline cannot run here; empty if it can."""
    home = os.environ.get("JAVA_HOME")
    has_java = Path(home, "bin", "java").exists() if home else shutil.which("java") is not None
    return "" if has_java else "there is no Java on this machine"


def run_pipeline(endpoint: str, bootstrap: str, events: Sequence[Event], console: Console) -> PipelineOutcome:
    """Everything that is in the topic, or DemoFailed if the result is not what the orders say."""
    began = time.perf_counter()
    console.print(f"streamhouse pipeline run examples/{FILE.name} --once; starting Spark")
    with (
        tempfile.TemporaryDirectory(prefix="streamhouse-demo-pipeline-") as directory,
        meter(console, "revenue per minute and region", len(events)) as progress,
    ):
        dead_letters = _run(endpoint, Path(directory), progress)
    seconds = time.perf_counter() - began
    result = read_result(bootstrap)
    regions = by_region(result)
    expected = expected_of(events)
    if regions != expected:
        different = sorted(key for key in regions.keys() | expected.keys() if regions.get(key) != expected.get(key))
        raise DemoFailed(f"the pipeline's revenue of {different[:3]} is not what the orders say")
    return PipelineOutcome(
        orders=len(events), rows=len(result), dead_letters=dead_letters, seconds=seconds, regions=regions
    )


def _run(endpoint: str, directory: Path, progress: Meter) -> int:
    """Returns how many dead letters there were."""
    settings = {"PIPELINE_CHECKPOINTS": str(directory / "checkpoints"), "STREAMHOUSE_STATE_DIR": str(directory)}
    command = [sys.executable, "-m", "streamhouse", "pipeline", "run", str(FILE), "--once", "--json"]
    with (directory / "log").open("w+") as log:
        process = subprocess.Popen(
            [*command, "--endpoint", endpoint],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**_clean_environment(), **settings},
        )
        hung = threading.Timer(_HUNG_SECONDS, process.kill)
        hung.start()
        try:
            assert process.stdout is not None
            dead_letters = _watch(process.stdout, progress)
            exit_code = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            hung.cancel()
        if exit_code != 0:
            log.seek(0)
            last = "".join(log.readlines()[-_SHOWN_LOG_LINES:])
            raise DemoFailed(f"the pipeline ended with exit code {exit_code}\n{last}")
    return dead_letters


def _watch(lines: IO[str], progress: Meter) -> int:
    """Each line is a micro-batch of the pipeline's sink or of its dead letters."""
    orders = dead_letters = 0
    for line in lines:
        batch = json.loads(line)
        if batch.get("query") == RESULT_TOPIC:
            orders += batch["input_rows"]
            progress.reached(orders)
        else:
            dead_letters += batch.get("output_rows", 0)
    return dead_letters


def _clean_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("STREAMHOUSE_")}
