"""The demo's node: `streamhouse serve` in a process of its own, with a data directory and a free port."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time  # noqa: TID251 - how long a real process takes
from pathlib import Path

import psutil

from demo.failure import DemoFailed

# Small segments, so that they are written while one watches and not only at the end.
SERVE_OPTIONS = ("--segment-bytes", "512KiB", "--segment-age", "2s")
_FREE_PORTS = ("--kafka-port", "0", "--http-port", "0", "--grpc-port", "0", "--flume-port", "0")
_READY_SECONDS = 60
_DRAIN_SECONDS = 90
_SHOWN_LOG_LINES = 20


class ServedNode:
    """Starts when made; `stop` must be called, and `kill` may always be."""

    def __init__(self, data_dir: Path) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the process
        began = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streamhouse", "serve", "--data-dir", data_dir, *_FREE_PORTS, *SERVE_OPTIONS],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={name: value for name, value in os.environ.items() if not name.startswith("STREAMHOUSE_")},
            # Ctrl-C is for the demo, which then stops the node.
            start_new_session=True,
        )
        try:
            addresses = self._wait_ready()
        except BaseException:
            self.kill()
            raise
        self.bootstrap = addresses["kafka"]
        self.endpoint = f"http://{addresses['http']}"
        self.start_seconds = time.perf_counter() - began

    def _wait_ready(self) -> dict[str, str]:
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], _READY_SECONDS)
        line = self._process.stdout.readline() if readable else ""
        fields = dict(field.partition("=")[::2] for field in line.split()[1:])
        if not line.startswith("ready ") or not {"kafka", "http"} <= fields.keys():
            raise DemoFailed(f"the node did not become ready\n{self.log()}")
        return fields

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def memory_bytes(self) -> int:
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def stop(self) -> float:
        """Drain it as an operator would; returns the seconds it took. Anything but exit code 0 is a failure."""
        began = time.perf_counter()
        self._process.send_signal(signal.SIGTERM)
        try:
            exit_code = self._process.wait(_DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"the node did not stop within {_DRAIN_SECONDS} s\n{self.log()}") from None
        if exit_code != 0:
            raise DemoFailed(f"the node stopped with exit code {exit_code}\n{self.log()}")
        return time.perf_counter() - began

    def kill(self) -> None:
        if self.is_running:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """The last lines that the node logged."""
        self._log.seek(0)
        return "".join(self._log.readlines()[-_SHOWN_LOG_LINES:])
