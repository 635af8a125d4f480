"""Faults at exact system calls: strace as the wrapper of a node."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

# The calls that put bytes on a disk or on a socket, or move, make and remove files: between any two of them a crash
# leaves another state behind.
WRITE_PATH = (
    "write", "writev", "pwrite64", "pwritev", "pwritev2", "sendto", "sendmsg", "fsync", "fdatasync", "sync_file_range",
    "fallocate", "ftruncate", "rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat",
)  # fmt: skip
_CALL = re.compile(r"^(\d+) +(\w+)\(")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The n-th time that a thread makes a system call."""

    call: str
    number: int

    def __str__(self) -> str:
        return f"{self.call}#{self.number}"


def kill_at(point: Point) -> list[str]:
    """A wrapper under which the node dies on entering that call, before the kernel does what it asks for."""
    return _strace("/dev/null", point.call, f"{point.call}:signal=SIGKILL:when={point.number}")


def fail_from(call: str, error: str, number: int) -> list[str]:
    """A wrapper under which that call fails in every thread from its n-th time on."""
    return _strace("/dev/null", call, f"{call}:error={error}:when={number}+")


def fail_once(call: str, error: str, number: int) -> list[str]:
    """A wrapper under which that call fails in each thread once, the n-th time."""
    return _strace("/dev/null", call, f"{call}:error={error}:when={number}")


def delay(call: str, seconds: float) -> list[str]:
    """A wrapper under which that call takes so much longer."""
    return _strace("/dev/null", call, f"{call}:delay_enter={int(seconds * 1_000_000)}")


def record(log: Path) -> list[str]:
    """A wrapper that only notes which calls of the write path a node makes."""
    return _strace(str(log), ",".join(WRITE_PATH))


def read_points(log: Path) -> list[Point]:
    """All moments of a recorded run, in order."""
    counts: Counter[tuple[str, str]] = Counter()
    points: dict[Point, None] = {}
    for line in log.read_text(errors="replace").splitlines():
        call = _CALL.match(line)
        if call is not None:
            thread, name = call.groups()
            counts[thread, name] += 1
            points.setdefault(Point(call=name, number=counts[thread, name]))
    return list(points)


def _strace(log: str, calls: str, inject: str | None = None) -> list[str]:
    injection = [] if inject is None else ["-e", f"inject={inject}"]
    # With the seccomp filter all other calls run at full speed.
    return ["strace", "-f", "--seccomp-bpf", "-qq", "-o", log, "-e", "signal=none", "-e", f"trace={calls}", *injection]
