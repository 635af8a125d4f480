"""One node, server or agent, in a process of its own: start, kill, pause, stop, and start again on what it left."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from node.wait import HUNG_SECONDS, eventually
from services.ports import free_port

_READY = "ready "
_STDERR_SHOWN = 4000


class NodeDied(AssertionError):
    """The process ended before it was ready."""

    def __init__(self, exit_code: int, stdout: str, stderr: str) -> None:
        super().__init__(f"the node exited with {exit_code} before it was ready\n{stdout[-500:]}\n{stderr}")
        self.exit_code = exit_code
        self.stderr = stderr


class Node:
    """`with Node(directory, "--segment-bytes", "64KiB") as node:` starts a node and leaves nothing running.

    `wrapper` is put before the command (strace, ip netns exec); a later `start` may have another one. `command` is
    what it is told to be, and `host` where its clients reach it."""

    def __init__(
        self,
        data_dir: Path,
        *options: str,
        env: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
        port: int | None = None,
        command: str = "serve",
        host: str = "127.0.0.1",
    ) -> None:
        self.data_dir = data_dir
        self.host = host
        self.port = free_port() if port is None else port
        # With port 0 both are chosen anew at each start, as those for gRPC and Flume always are.
        self.http_port = 0 if self.port == 0 else free_port()
        self.grpc_address = ""
        self.flume_address = ""
        self._options = options
        self._env = dict(env or {})
        self._wrapper = tuple(wrapper)
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._logs = Path(tempfile.mkdtemp(prefix="node-logs-"))
        self._pid: int | None = None
        self._left_behind: list[psutil.Process] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is not None:
            error.add_note(f"stderr of the node:\n{self.stderr()}")
        self.close()

    def close(self) -> None:
        """Make sure that nothing of it runs."""
        self._end_group()
        shutil.rmtree(self._logs, ignore_errors=True)

    # -- starting -----------------------------------------------------------------------------------------------

    def start(
        self,
        *more_options: str,
        wrapper: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> None:
        """Start on the same directory and port as before; NodeDied if it ends instead of becoming ready."""
        assert not self.running, "the node is already running"
        self._end_group()
        node = node_command(self._command, self.data_dir, self.port, self.http_port)
        # stderr goes on over all runs: a failure message should show the run before the crash as well.
        with (self._logs / "stdout").open("wb") as stdout, (self._logs / "stderr").open("ab") as stderr:
            self._process = subprocess.Popen(
                [*(self._wrapper if wrapper is None else wrapper), *node, *self._options, *more_options],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env={**clean_environment(), **self._env, **(env or {})},
                start_new_session=True,
            )
        self._pid = None
        self._left_behind = None
        if wait:
            self.wait_ready()

    def wait_ready(self) -> None:
        eventually(self._ready_or_dead, "the node's ready line")

    def _ready_or_dead(self) -> bool:
        exit_code = self._exit_code()
        ready = [line for line in self.stdout().splitlines() if line.startswith(_READY)]
        if ready:
            fields = dict(field.split("=", 1) for field in ready[0].removeprefix(_READY).split())
            self.port = int(fields["kafka"].rpartition(":")[2])
            self.http_port = int(fields["http"].rpartition(":")[2])
            self.grpc_address = fields["grpc"]
            self.flume_address = fields["flume"]
        elif exit_code is not None:
            raise NodeDied(exit_code, self.stdout(), self.stderr())
        return bool(ready)

    # -- looking ------------------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def address(self) -> tuple[str, int]:
        return (self.host, self.port)

    @property
    def http(self) -> str:
        """The URL of its HTTP port."""
        return f"http://{self.host}:{self.http_port}"

    @property
    def pid(self) -> int:
        """The node's own process id, also when it runs below a wrapper."""
        assert self._process is not None
        if self._pid is None:
            self._pid = self._find_pid(self._process.pid)
        return self._pid

    def _find_pid(self, launched: int) -> int:
        def is_node(process: psutil.Process) -> bool:
            try:
                return process.cmdline()[1:4] == ["-m", "streamhouse", self._command]
            except psutil.ZombieProcess:
                return process.pid != launched  # it has ended below a wrapper, which must not be taken for it
            except psutil.NoSuchProcess:
                return False

        family = [psutil.Process(launched), *psutil.Process(launched).children(recursive=True)]
        return next((process.pid for process in family if is_node(process)), launched)

    @property
    def running(self) -> bool:
        return self._process is not None and self._exit_code() is None

    @property
    def rss_bytes(self) -> int:
        return int(psutil.Process(self.pid).memory_info().rss)

    def stdout(self) -> str:
        return self._log("stdout")

    def stderr(self) -> str:
        return self._log("stderr")[-_STDERR_SHOWN:]

    def _log(self, name: str) -> str:
        log = self._logs / name
        return log.read_text(errors="replace") if log.exists() else ""

    # -- ending -------------------------------------------------------------------------------------------------

    def kill9(self) -> None:
        """End it as a crash does: no handler runs, nothing is flushed."""
        assert self._process is not None
        if self.running:
            self._signal_to_end(signal.SIGKILL)
        self.wait_exit()

    def terminate(self) -> int:
        """Ask it to drain and stop; returns its exit code."""
        assert self._process is not None
        if self.running:
            self._signal_to_end(signal.SIGTERM)
        return self.wait_exit()

    def _signal_to_end(self, number: signal.Signals) -> None:
        """To one that runs: the id of one that has ended may be another's by now. A wrapper outlives its node for a
        moment, so the node may have ended all the same."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait_exit(self) -> int:
        """The exit code, once it has ended by itself; a signal is the negative of its number."""
        assert self._process is not None
        self._process.wait(HUNG_SECONDS)
        exit_code = self._exit_code()
        assert exit_code is not None
        return exit_code

    def restart(self) -> None:
        self.kill9()
        self.start()

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def _exit_code(self) -> int | None:
        """None while it runs. Whoever first sees that it has ended notes what it left behind: later, its id may be
        another's."""
        assert self._process is not None
        exit_code = self._process.poll()
        if exit_code is not None and self._left_behind is None:
            self._left_behind = _members(self._process.pid)
        return exit_code

    def _end_group(self) -> None:
        """Wrapper and node share a session of their own; whatever of it is left goes."""
        if self._process is None:
            return
        if self._exit_code() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(HUNG_SECONDS)
        for process in self._left_behind or ():
            with suppress(psutil.NoSuchProcess):
                process.kill()


def _members(group: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(ProcessLookupError):
            if os.getpgid(process.pid) == group:
                found.append(process)
    return found


def node_command(command: str, data_dir: Path, port: int, http_port: int = 0) -> list[str]:
    program = [sys.executable, "-m", "streamhouse", command]
    ports = ["--kafka-port", str(port), "--http-port", str(http_port), "--grpc-port", "0", "--flume-port", "0"]
    return [*program, "--data-dir", str(data_dir), *ports]


def clean_environment() -> dict[str, str]:
    """Ours without what would change a node's settings behind a test's back."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("STREAMHOUSE_", "AWS_"))}
