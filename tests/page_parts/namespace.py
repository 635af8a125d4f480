"""A machine of its own for the pages: network, processes and names, so that what they print is run as it is printed.

The ports that pages name are free there, the hosts that they name are that machine, and nothing survives it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from node.wait import eventually
from services.process import start_process, stop_process

HOSTS = ("localhost", "host", "db.example.com", "broker.example.com", "collector")
"""The names that pages use, of the machine itself and of others."""

_READY = "ready"
# /var/lib: the directories that pages name are not to be this machine's.
_SET_UP = f"""
set -e
ip link set lo up
mount -t tmpfs tmpfs /var/lib
mount --bind "$1/hosts" /etc/hosts
touch "$1/{_READY}"
exec sleep infinity
"""


class Namespace:
    """`wrapper` is put before a command that is to run in it."""

    def __init__(self, init_pid: int) -> None:
        self.wrapper: Sequence[str] = (
            "nsenter", "--target", str(init_pid), "--net", "--mount", "--pid", "--"
        )  # fmt: skip


@contextmanager
def namespace(directory: Path) -> Iterator[Namespace]:
    """Gone at the end, with every process in it."""
    assert os.geteuid() == 0, "the pages are run in namespaces of their own, which takes root, as `make test` does"
    (directory / "hosts").write_text(f"127.0.0.1 {' '.join((*HOSTS, socket.gethostname()))}\n")
    unshare = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    process = start_process(
        [*unshare, "bash", "-c", _SET_UP, "bash", str(directory)],
        log=directory / "namespace.log",
        ready=(directory / _READY).exists,
    )
    try:
        yield Namespace(eventually(lambda: _child_of(process), "the first process of the namespace"))
    finally:
        stop_process(process, signal.SIGKILL)


def _child_of(process: subprocess.Popen[bytes]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(children[0]) if children else 0
