"""Facts about the machine and the software that the figures belong to."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import confluent_kafka
import psutil  # type: ignore[import-untyped]


def facts() -> dict[str, str | int]:
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD") or "unknown",
        "uncommitted_changes": "yes" if _git("status", "--porcelain") else "no",
        "streamhouse": _version("streamhouse"),
        "python": platform.python_version(),
        "confluent_kafka": _version("confluent-kafka"),
        "librdkafka": confluent_kafka.libversion()[0],
        "kernel": platform.release(),
        "processor": _processor(),
        "cores": os.cpu_count() or 0,
        "memory_bytes": psutil.virtual_memory().total,
    }


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
