"""One run of the benchmarks: how long everything takes, where files go, and the work that scenarios share."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.batches import order_values, produce_frame, record_batch
from bench.native import Native
from bench.servers import Server

FILL_VALUE_BYTES = 1024
FILL_BATCH_RECORDS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much is measured. The quick plan shows that everything works; its figures mean little."""

    produce_seconds: float
    request_seconds: float
    latency_seconds: float
    repeats: int
    codecs: Sequence[str]
    value_bytes: Sequence[int]
    partitions: Sequence[int]
    consume_bytes: int
    cold_bytes: int
    connections: int
    many_partitions: int
    many_segments: int
    recovery_bytes: Sequence[int]
    peers: bool
    lease_ttl_ms: int
    seed_timings: bool
    failover_rounds: int
    steady_seconds: float
    agents: Sequence[int]
    scale_loads: int
    cluster_partitions: int
    idle_seconds: float


FULL = Plan(
    produce_seconds=2.5,
    request_seconds=1.5,
    latency_seconds=5.0,
    repeats=3,
    codecs=("none", "lz4"),
    value_bytes=(100, 1024),
    partitions=(1, 4, 100),
    consume_bytes=128 << 20,
    cold_bytes=512 << 20,
    connections=1000,
    many_partitions=1000,
    many_segments=10_000,
    recovery_bytes=(256 << 20, 1 << 30),
    peers=True,
    lease_ttl_ms=5_000,
    seed_timings=True,
    failover_rounds=5,
    steady_seconds=2.0,
    agents=(1, 2, 3),
    scale_loads=2,
    cluster_partitions=1000,
    idle_seconds=30.0,
)

QUICK = Plan(
    produce_seconds=0.5,
    request_seconds=0.3,
    latency_seconds=0.5,
    repeats=1,
    codecs=("none",),
    value_bytes=(100,),
    partitions=(4,),
    consume_bytes=8 << 20,
    cold_bytes=8 << 20,
    connections=50,
    many_partitions=20,
    many_segments=50,
    recovery_bytes=(8 << 20, 16 << 20),
    peers=False,
    lease_ttl_ms=2_000,
    seed_timings=False,
    failover_rounds=1,
    steady_seconds=0.5,
    agents=(1, 2),
    scale_loads=1,
    cluster_partitions=60,
    idle_seconds=2.0,
)


class Run:
    """Everything that a scenario is given."""

    def __init__(self, *, plan: Plan, out: Path, console: Console) -> None:
        self.plan = plan
        self.native = Native(out / "bin")
        self.out = out
        self._work = out / "work"
        self._console = console

    def prepare(self) -> None:
        self.clean()
        self._work.mkdir(parents=True)
        self.native.build()

    def clean(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)

    def directory(self, name: str) -> Path:
        """An empty directory; every one is on the same file system, so that the same disk is measured."""
        path = self._work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
        return path

    def say(self, text: str) -> None:
        self._console.print(f"[dim]· {text}[/dim]", highlight=False)

    def one_record_frames(self, topic: str, partitions: int) -> Path:
        """Produce requests of one 100-byte record each, one for every partition."""
        values = order_values(100, partitions)
        frames = (produce_frame(topic, index, record_batch([value])) for index, value in enumerate(values))
        return self._frames_file(f"one-record-{topic}-{partitions}", frames)

    def batch_frames(self, name: str, topic: str, partitions: Iterable[int], values: Sequence[bytes]) -> Path:
        """Produce requests of one batch with these values, one for each of the partitions."""
        batch = record_batch(values)
        return self._frames_file(f"batch-{name}", (produce_frame(topic, number, batch) for number in partitions))

    def fill(self, server: Server, topic: str, partitions: int, size_bytes: int, connections: int = 4) -> int:
        """Writes about that many bytes of 1 KiB records in batches of 128 KiB; returns the bytes of the batches."""
        values = order_values(FILL_VALUE_BYTES, FILL_BATCH_RECORDS)
        batch = record_batch(values)
        frames = (produce_frame(topic, index, batch) for index in range(partitions))
        path = self._frames_file(f"fill-{topic}-{partitions}", frames)
        rounds = max(1, size_bytes // (len(batch) * partitions))
        requests = rounds * partitions
        self.native.run("requests", server.host, server.port, path, connections, 2, 0, 600, requests)
        return requests * len(batch)

    def _frames_file(self, name: str, frames: Iterable[bytes]) -> Path:
        path = self._work / f"{name}.frames"
        path.write_bytes(b"".join(frames))
        return path
