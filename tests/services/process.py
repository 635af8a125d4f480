"""A server as a child process: ready before we go on, gone when its parent is."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

_START_SECONDS = 60
_STOP_SECONDS = 30
_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def start_process(
    command: Sequence[str | Path], *, log: Path, ready: Callable[[], bool], user: int | None = None
) -> subprocess.Popen[bytes]:
    """Returns when `ready()` is true; a server that dies before that, or never gets there, is an error with its log."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            user=user,
            group=user,
            extra_groups=None if user is None else [],
            preexec_fn=_die_with_parent,
        )
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > deadline:
            stop_process(process, signal.SIGKILL)
            raise RuntimeError(f"{command[0]} did not start:\n{log.read_text(errors='replace')[-4000:]}")
        time.sleep(0.02)
    return process


def stop_process(process: subprocess.Popen[bytes], how: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(how)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def accepts_connections(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def unprivileged_user() -> int | None:
    """Whom to run a server as that refuses root; None if we are not root ourselves."""
    return 65534 if os.geteuid() == 0 else None


def _die_with_parent() -> None:
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
