"""Server processes under measurement: started, watched for CPU and memory, drained or killed."""

from __future__ import annotations

import re
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from bench.native import last_lines

DOOR = re.compile(r"(?P<name>[a-z]+)=(?P<host>[^\s:]+):(?P<port>\d+)")
START_SECONDS = 300.0
STOP_SECONDS = 120.0


class ServerFailed(Exception):
    """A server did not become ready, or did not stop."""


def announced_doors(process: subprocess.Popen[bytes]) -> dict[str, tuple[str, int]]:
    """Waits for the line `ready kafka=HOST:PORT …` on standard output: what is open, and where."""
    deadline = time.monotonic() + START_SECONDS
    output = process.stdout
    assert output is not None
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            if not selector.select(timeout=1.0):
                continue
            line = output.readline().decode(errors="replace")
            if not line:
                raise ServerFailed("it ended before it was ready")
            if line.startswith("ready "):
                return {found["name"]: (found["host"], int(found["port"])) for found in DOOR.finditer(line)}
    raise ServerFailed(f"it was not ready after {START_SECONDS:g} s")


class Server:
    """A child process that serves clients; `doors_of` waits until it does and says where. `host` and `port` are of the
    first of its doors, which is Kafka's."""

    def __init__(
        self,
        command: Sequence[str],
        log: Path,
        doors_of: Callable[[subprocess.Popen[bytes]], dict[str, tuple[str, int]]] = announced_doors,
    ) -> None:
        self.command = list(command)
        self.log = log
        started = time.perf_counter()
        with log.open("ab") as errors:
            self._process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=errors)
        self._watched = psutil.Process(self._process.pid)
        try:
            self.doors = doors_of(self._process)
        except ServerFailed as failure:
            self.kill()
            raise ServerFailed(f"{self._name}: {failure}; its log ends with: {self._end_of_log()}") from None
        self.start_seconds = time.perf_counter() - started
        self.host, self.port = next(iter(self.doors.values()))

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def cpu_seconds(self) -> float:
        used = self._watched.cpu_times()
        return float(used.user + used.system)

    def rss_bytes(self) -> int:
        return int(self._watched.memory_info().rss)

    def settle(self, patience_seconds: float = 20.0) -> None:
        """Waits until work that goes on behind the acknowledgements (uploads) no longer disturbs a measurement."""
        deadline = time.monotonic() + patience_seconds
        quiet = 0
        while quiet < 3 and time.monotonic() < deadline:
            before = self.cpu_seconds()
            time.sleep(0.1)
            quiet = quiet + 1 if self.cpu_seconds() - before <= 0.02 else 0

    def stop(self) -> None:
        """Asks it to drain and waits."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(
                f"{self._name} did not stop within {STOP_SECONDS:g} s; its log ends with: {self._end_of_log()}"
            ) from None
        finally:
            self._close_output()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._close_output()

    @property
    def _name(self) -> str:
        return f"{Path(self.command[0]).name} with process id {self._process.pid}"

    def _end_of_log(self) -> str:
        return last_lines(self.log.read_text(errors="replace"))

    def _close_output(self) -> None:
        if self._process.stdout is not None:
            self._process.stdout.close()

    @property
    def running(self) -> bool:
        return self._process.poll() is None


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """Ends the server at the end of the block, whatever happened in it. What it held is thrown away: no drain."""
    try:
        yield server
    finally:
        if server.running:
            server.kill()


def start_node(data_dir: Path, *flags: str) -> Server:
    """A StreamHouse node as a person would start it, on a free port."""
    program = [sys.executable, "-m", "streamhouse", "serve"]
    ports = ["--kafka-port", "0", "--http-port", "0", "--grpc-port", "0", "--flume-port", "0"]
    settings = ["--data-dir", str(data_dir), *ports, "--log-level", "warning"]
    return Server([*program, *settings, *flags], data_dir.parent / f"{data_dir.name}.log")


def start_sink(program: Path, directory: Path, topic: str, partitions: int) -> Server:
    return Server([str(program), str(directory), topic, str(partitions)], directory / "sink.log")
