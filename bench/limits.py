"""Limits of this machine, measured in the same run: the disk's sync, the loopback, a pass over bytes in files."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from crc32c import crc32c

from bench.native import Native

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    p50_us: float
    p99_us: float


def bare_sync(directory: Path, *, rate: float, seconds: float, size_bytes: int) -> Latency:
    """A write of a few bytes and an fdatasync, at a rate, into a file that was written once already."""
    path = directory / "bare_sync.data"
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        os.pwrite(file, bytes(16 * CHUNK_BYTES), 0)
        os.fsync(file)
        payload = os.urandom(size_bytes)
        taken: list[float] = []
        position = 0
        due = time.perf_counter()
        end = due + seconds
        while due < end:
            time.sleep(max(0.0, due - time.perf_counter()))
            start = time.perf_counter()
            os.pwrite(file, payload, position % (15 * CHUNK_BYTES))
            os.fdatasync(file)
            taken.append(time.perf_counter() - start)
            position += size_bytes
            due += 1 / rate
    finally:
        os.close(file)
        path.unlink()
    cuts = statistics.quantiles(taken, n=100)
    return Latency(p50_us=cuts[49] * 1e6, p99_us=cuts[98] * 1e6)


def loopback_bytes_per_second(native: Native, *, connections: int, seconds: float) -> float:
    measured = native.run("loopback", connections, seconds, CHUNK_BYTES)
    return measured["bytes"] / measured["seconds"]


def checked_read_bytes_per_second(files: Iterable[Path]) -> float:
    """Reads files and sums them with CRC-32C: what any recovery has to do at least."""
    total = 0
    buffer = bytearray(CHUNK_BYTES)
    start = time.perf_counter()
    for path in files:
        with path.open("rb", buffering=0) as file:
            while size := file.readinto(buffer):
                crc32c(memoryview(buffer)[:size])
                total += size
    return total / (time.perf_counter() - start)
