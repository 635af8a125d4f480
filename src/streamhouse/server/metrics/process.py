"""The process itself, by the names that Prometheus' own clients use, and its event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from resource import RLIMIT_NOFILE, getpagesize, getrlimit

from streamhouse.runtime.kernels import missing_kernels
from streamhouse.runtime.measures import Histogram
from streamhouse.server.metrics.exposition import Family, counter, gauge, histogram

_PROCESS = Path("/proc/self")
_STARTED_TICKS = 19
"""Where a process's start is in its `stat`, after the name, which may hold anything."""


def process_families(loop_delay_seconds: Histogram) -> Iterator[Family]:
    labels = {"version": version("streamhouse")}
    yield gauge("streamhouse_build_info", "Always 1; the labels say what runs.", 1, labels)
    yield gauge(
        "streamhouse_kernels_missing",
        "Compiled kernels that this installation lacks; if not 0, the node is many times slower.",
        len(missing_kernels()),
    )
    yield gauge("streamhouse_tasks", "Tasks on the event loop.", len(asyncio.all_tasks()))
    yield histogram(
        "streamhouse_event_loop_delay_seconds",
        "How much later than it should the event loop came to a task, looked at four times a second.",
        loop_delay_seconds,
    )
    times = os.times()
    pages = int((_PROCESS / "statm").read_text().split()[1])
    yield counter("process_cpu_seconds_total", "User and system CPU time.", times.user + times.system)
    yield gauge("process_resident_memory_bytes", "Resident memory size.", pages * getpagesize())
    yield gauge("process_open_fds", "Open file descriptors.", sum(1 for _ in (_PROCESS / "fd").iterdir()))
    yield gauge("process_max_fds", "How many there may be.", getrlimit(RLIMIT_NOFILE)[0])
    yield gauge("process_start_time_seconds", "When the process started.", _started_at_s())


def _started_at_s() -> float:
    started = int((_PROCESS / "stat").read_text().rpartition(")")[2].split()[_STARTED_TICKS])
    booted = next(line for line in Path("/proc/stat").read_text().splitlines() if line.startswith("btime "))
    return int(booted.split()[1]) + started / os.sysconf("SC_CLK_TCK")
