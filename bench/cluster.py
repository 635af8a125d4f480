"""Agents as processes on shared storage: started together, added, killed, drained, and who of them leads what."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]

from bench.servers import Server, ServerFailed
from bench.shared_storage import SharedStorage
from bench.single_produce import acknowledged_at

PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.1
UNCHANGED_SECONDS = 0.5
"""A placement that stays the same for this long is the one that the agents want."""
LEASES = """
    SELECT topic, partition_id, leader_agent_id, lease_expires_at - extract(epoch FROM clock_timestamp()) * 1000
    FROM partition_leases ORDER BY topic, partition_id
"""
UNDER_WAY = "SELECT count(*) FROM partition_transfers WHERE state IN ('pending', 'accepted')"


class Lease(NamedTuple):
    topic: str
    partition: int
    agent: str
    left_ms: float


class Cluster:
    """Keeps each agent's directory and flags over its lives."""

    def __init__(self, storage: SharedStorage, directory: Path, *flags: str) -> None:
        self.storage = storage
        self.agents: dict[str, Server] = {}
        self._directory = directory
        self._flags = flags

    def start(self, *names: str) -> float:
        """All at the same time; returns how long it took until the last was ready."""
        started = time.perf_counter()
        with ThreadPoolExecutor(len(names)) as threads:
            # Each as soon as it is there, so that none is left behind when another fails.
            list(threads.map(self._start, names))
        return time.perf_counter() - started

    def _start(self, name: str) -> None:
        data_dir = self._directory / name
        program = [sys.executable, "-m", "streamhouse", "agent", "--agent-id", name, "--zone", f"zone-of-{name}"]
        ports = ["--kafka-port", "0", "--http-port", "0", "--grpc-port", "0", "--flume-port", "0"]
        settings = ["--data-dir", str(data_dir), *ports, "--log-level", "warning"]
        command = [*program, *settings, *self.storage.flags(), *self._flags]
        self.agents[name] = Server(command, self._directory / f"{name}.log")

    def kill(self, name: str) -> None:
        self.agents.pop(name).kill()

    def stop(self, *names: str) -> None:
        """Drained, all at the same time."""
        with ThreadPoolExecutor(len(names)) as threads:
            list(threads.map(lambda name: self.agents.pop(name).stop(), names))

    def end(self) -> None:
        for server in self.agents.values():
            if server.running:
                server.kill()

    @property
    def bootstrap(self) -> str:
        return ",".join(server.address for server in self.agents.values())

    def cpu_seconds(self) -> float:
        return sum(server.cpu_seconds() for server in self.agents.values())

    def leases(self, topic: str) -> list[Lease]:
        """Those that have not run out."""
        rows = self.storage.query(LEASES)
        leases = [Lease(name, number, agent, float(left_ms)) for name, number, agent, left_ms in rows]
        return [lease for lease in leases if lease.topic == topic and lease.left_ms > 0]

    def led_by(self, name: str, topic: str) -> list[Lease]:
        return [lease for lease in self.leases(topic) if lease.agent == name]

    def settle(self, topic: str, partitions: int) -> None:
        """Waits until the partitions are with whom they will stay, on every agent some, and all take records."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        placement: Sequence[tuple[int, str]] = ()
        since = time.monotonic()
        while time.monotonic() < deadline:
            leases = self.leases(topic)
            now = [(lease.partition, lease.agent) for lease in leases]
            if now != placement or len(now) < partitions or self.storage.query(UNDER_WAY) != [(0,)]:
                placement, since = now, time.monotonic()
            elif time.monotonic() - since > UNCHANGED_SECONDS and {agent for _, agent in now} == set(self.agents):
                acknowledged_at(self.agents.values(), topic, range(partitions))
                return
            time.sleep(PAUSE_SECONDS)
        raise ServerFailed(f"{topic} was not spread over {sorted(self.agents)} after {PATIENCE_SECONDS:g} s")


@contextmanager
def cluster(storage: SharedStorage, directory: Path, *flags: str) -> Iterator[Cluster]:
    agents = Cluster(storage, directory, *flags)
    try:
        yield agents
    finally:
        agents.end()


def all_cpu_seconds() -> float:
    """What this process and all that it started have used so far, those that ended included: agents, clients,
    database and object server."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(_used(process) for process in family)


def _used(process: psutil.Process) -> float:
    try:
        used = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0  # it ended just now, and its parent's figure has it
    return float(used.user + used.system + used.children_user + used.children_system)
