"""The revenue pipeline: `streamhouse pipeline run` beside the cluster, watched until it has seen every order."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time  # noqa: TID251 - how long a real process takes
from collections import Counter
from pathlib import Path
from typing import IO

from demo.children import clean_environment, end_with_parent
from demo.failure import DemoFailed
from demo.progress import Meter

FILE = Path(__file__).with_name("revenue.yaml")
DEAD_LETTER_TOPIC = "orders-dead"
SINKS = ("revenue", "lake")
_HUNG_SECONDS = 1_200.0
_STOP_SECONDS = 60.0
_ASKED_EVERY_SECONDS = 0.1
_SHOWN_LOG_LINES = 20


def why_not() -> str:
    """Why a pipeline cannot run here; empty if it can."""
    home = os.environ.get("JAVA_HOME")
    has_java = Path(home, "bin", "java").exists() if home else shutil.which("java") is not None
    return "" if has_java else "there is no Java on this machine"


class Pipeline:
    """Starts when made."""

    def __init__(self, endpoints: str, directory: Path, state_dir: Path) -> None:
        self.lake = directory / "lake" / "revenue"
        self._has_result = threading.Event()
        self._began = time.perf_counter()
        self._read: Counter[str] = Counter()
        self._written: Counter[str] = Counter()
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the process
        settings = {"DEMO_DIRECTORY": str(directory), "STREAMHOUSE_STATE_DIR": str(state_dir)}
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamhouse", "pipeline", "run", str(FILE), "--json"),
                *("--endpoint", endpoints),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**clean_environment(), **settings},
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        assert self._process.stdout is not None
        self._watcher = threading.Thread(target=self._watch, args=(self._process.stdout,), daemon=True)
        self._watcher.start()

    @property
    def dead_letters(self) -> int:
        return self._written["dead_letter"]

    def wait_for_result(self) -> float:
        """Until the first rows are written; returns the seconds since it was started, Spark's start among them."""
        self._has_result.wait(_HUNG_SECONDS)
        if not self._written[SINKS[0]]:
            raise DemoFailed(f"the pipeline has no result\n{self._last_log()}")
        return time.perf_counter() - self._began

    def finish(self, orders: int, progress: Meter) -> float:
        """Wait until both sinks have had every order, then stop it; returns the seconds since it was started."""
        while (done := min(self._read[sink] for sink in SINKS)) < orders:
            progress.reached(done)
            if not self._watcher.is_alive() or time.perf_counter() - self._began > _HUNG_SECONDS:
                raise DemoFailed(f"the pipeline has had {done:,} of {orders:,} orders\n{self._last_log()}")
            time.sleep(_ASKED_EVERY_SECONDS)
        progress.reached(orders)
        seconds = time.perf_counter() - self._began
        self._stop()
        return seconds

    def _stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            exit_code = self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"the pipeline did not stop within {_STOP_SECONDS:.0f} s\n{self._last_log()}") from None
        if exit_code != 0:
            raise DemoFailed(f"the pipeline ended with exit code {exit_code}\n{self._last_log()}")
        self._watcher.join()

    def kill(self) -> None:
        """With the Java process that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def _watch(self, lines: IO[str]) -> None:
        """Each line is a micro-batch of a sink or of the dead letters."""
        for line in lines:
            batch = json.loads(line)
            query = batch.get("query", "")
            self._read[query] += batch.get("input_rows", 0)
            self._written[query] += batch.get("output_rows", 0)
            if query == SINKS[0] and self._written[query]:
                self._has_result.set()
        # It has ended: nobody need wait any longer.
        self._has_result.set()

    def _last_log(self) -> str:
        self._log.seek(0)
        return "".join(self._log.readlines()[-_SHOWN_LOG_LINES:])
