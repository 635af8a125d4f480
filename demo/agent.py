"""One agent of the demo: `streamhouse agent` in a process of its own, with a data directory and free ports."""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import psutil

from demo.children import clean_environment, end_with_parent
from demo.failure import DemoFailed

_FREE_PORTS = ("--kafka-port", "0", "--http-port", "0", "--grpc-port", "0", "--flume-port", "0")
_READY_SECONDS = 60
_DRAIN_SECONDS = 90
_SHOWN_LOG_LINES = 20


class Agent:
    """Starts when made, and is there after `wait_ready`; `kill` may always be called."""

    def __init__(self, name: str, data_dir: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.bootstrap = ""
        self.endpoint = ""
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamhouse", "agent", "--agent-id", name, "--data-dir", data_dir),
                *_FREE_PORTS,
                *options,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**clean_environment(), **(environment or {})},
            # Ctrl-C is for the demo, which then stops the agents.
            start_new_session=True,
            preexec_fn=end_with_parent,
        )

    def wait_ready(self) -> None:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            line = self._process.stdout.readline() if selector.select(_READY_SECONDS) else ""
        fields = dict(field.partition("=")[::2] for field in line.split()[1:])
        if not line.startswith("ready ") or not {"kafka", "http"} <= fields.keys():
            raise DemoFailed(f"{self.name} did not become ready\n{self.log()}")
        self.bootstrap = fields["kafka"]
        self.endpoint = f"http://{fields['http']}"

    @property
    def same_ports(self) -> tuple[str, ...]:
        """Options for another process in this one's place."""
        kafka, http = (address.rpartition(":")[2] for address in (self.bootstrap, self.endpoint))
        return ("--kafka-port", kafka, "--http-port", http)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def memory_bytes(self) -> int:
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def cpu_seconds(self) -> float:
        times = psutil.Process(self._process.pid).cpu_times()
        return float(times.user + times.system)

    def ask_to_stop(self) -> None:
        """As an operator would: it drains, hands over and ends."""
        if self.is_running:
            self._process.send_signal(signal.SIGTERM)

    def wait_stopped(self) -> None:
        """Anything but exit code 0 is a failure."""
        try:
            exit_code = self._process.wait(_DRAIN_SECONDS)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f"{self.name} did not stop within {_DRAIN_SECONDS} s\n{self.log()}") from None
        if exit_code != 0:
            raise DemoFailed(f"{self.name} stopped with exit code {exit_code}\n{self.log()}")

    def kill(self) -> None:
        """kill -9: nothing is flushed, nobody is told."""
        if self.is_running:
            self._process.kill()
            self._process.wait()

    def log(self) -> str:
        """The last lines that it logged."""
        self._log.seek(0)
        return "".join(self._log.readlines()[-_SHOWN_LOG_LINES:])
