"""(i) Fail-over: from kill -9 of a leader to the next acknowledged produce, and what producers notice of a drain."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.cluster import Cluster, cluster
from bench.real_services import ServiceMissing
from bench.rows import Row, at_most
from bench.run import Run
from bench.shared_storage import SharedStorage, percentiles, shared_storage
from bench.single_produce import acknowledged_at
from bench.steady_stream import SteadyStream
from bench.topics import create_topic

AGENTS = ("a1", "a2", "a3")
PARTITIONS = 12
RATE = 20.0 * PARTITIONS
"""Records a second over all partitions of a steady stream."""
DURABILITIES = ("object", "wal")


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    lease_ttl_ms: int
    lease_renewal_ms: int
    heartbeat_ms: int
    liveness_ms: int
    rebalance_ms: int

    def flags(self) -> list[str]:
        return [
            *("--lease-ttl", f"{self.lease_ttl_ms}ms", "--lease-renewal", f"{self.lease_renewal_ms}ms"),
            *("--heartbeat", f"{self.heartbeat_ms}ms", "--liveness", f"{self.liveness_ms}ms"),
            *("--rebalance", f"{self.rebalance_ms}ms"),
        ]

    def __str__(self) -> str:
        return f"leases of {self.lease_ttl_ms / 1000:g} s"


SEED = Timings(
    lease_ttl_ms=30_000, lease_renewal_ms=10_000, heartbeat_ms=15_000, liveness_ms=60_000, rebalance_ms=30_000
)
"""The defaults."""


def short(lease_ttl_ms: int) -> Timings:
    often_ms = lease_ttl_ms * 3 // 10
    return Timings(
        lease_ttl_ms=lease_ttl_ms,
        lease_renewal_ms=often_ms,
        heartbeat_ms=often_ms,
        liveness_ms=2 * lease_ttl_ms,
        rebalance_ms=lease_ttl_ms,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One kill: seconds until every partition of the victim took a record again, and the longest wait of a client."""

    seconds: float
    lease_left_seconds: float
    client_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Waits of a steady stream over all partitions: before, while an agent drains, and while it takes part again."""

    before: list[float]
    leaving: list[float]
    returning: list[float]
    stop_seconds: float


def rows(run: Run) -> Iterator[Row]:
    try:
        with shared_storage() as storage:
            # One for all: what an agent that was killed left on its disk is needed to start it again.
            directory = run.directory("failover")
            yield from _with_timings(run, storage, directory, short(run.plan.lease_ttl_ms), run.plan.failover_rounds)
            if run.plan.seed_timings:
                yield from _with_timings(run, storage, directory, SEED, 1)
    except ServiceMissing as missing:
        yield Row(scenario="failover", name="kill -9 of a leader", figure=None, unit="s", note=str(missing))


def _with_timings(run: Run, storage: SharedStorage, directory: Path, timings: Timings, rounds: int) -> Iterator[Row]:
    with cluster(storage, directory, *timings.flags()) as agents:
        agents.start(*AGENTS)
        topics = {durability: f"{durability}-{timings.lease_ttl_ms}" for durability in DURABILITIES}
        for durability, topic in topics.items():
            create_topic(agents.bootstrap, topic, PARTITIONS, {"streamhouse.durability": durability})
            agents.settle(topic, PARTITIONS)
        run.say(f"fail-over: drain under produces, {timings}")
        drains = [_drain(run, agents, topics) for _ in range(rounds)]
        for durability in topics:
            yield _drain_row(f"drain, {durability}, {timings}", [drain[durability] for drain in drains])
        run.say(f"fail-over: kill -9, {timings}")
        yield from _loss_rows(timings, [_lose_leader(agents, topics["object"]) for _ in range(rounds)])
        run.say(f"fail-over: kill -9 and start again, {timings}")
        yield _restart_row(timings, [_restart_leader(agents, topics["wal"]) for _ in range(rounds)])


# --- kill -9 ---


def _lose_leader(agents: Cluster, topic: str) -> Loss:
    victim = next(lease.agent for lease in agents.leases(topic) if lease.partition == 0)
    lost = [lease.partition for lease in agents.led_by(victim, topic)]
    with SteadyStream(agents.bootstrap, topic, 1, rate=RATE / PARTITIONS) as stream:
        asked_at = time.perf_counter()
        left_ms = max(lease.left_ms for lease in agents.led_by(victim, topic))
        killed_at = time.perf_counter()
        agents.kill(victim)
        taken = acknowledged_at(agents.agents.values(), topic, lost)
    agents.start(victim)
    agents.settle(topic, PARTITIONS)
    return Loss(
        seconds=max(taken.values()) - killed_at,
        lease_left_seconds=left_ms / 1000 - (killed_at - asked_at),
        client_seconds=max(stream.waits()),
    )


def _loss_rows(timings: Timings, losses: list[Loss]) -> Iterator[Row]:
    yield Row(
        scenario="failover",
        name=f"kill -9, object, {timings}: acknowledged again, p50",
        figure=statistics.median(loss.seconds for loss in losses),
        unit="s",
        limit=statistics.median(loss.lease_left_seconds for loss in losses),
        limit_name="left of the lease",
        details={"longest_beyond_the_lease_seconds": max(loss.seconds - loss.lease_left_seconds for loss in losses)},
    )
    yield Row(
        scenario="failover",
        name=f"kill -9, object, {timings}: acknowledged again, longest",
        figure=max(loss.seconds for loss in losses),
        unit="s",
        limit=timings.lease_ttl_ms / 1000,
        limit_name="lease TTL",
        note=f"{len(losses)} kills, {PARTITIONS} partitions; until the lease runs out nobody else may lead",
    )
    yield Row(
        scenario="failover",
        name=f"kill -9, object, {timings}: longest wait of confluent-kafka",
        figure=max(loss.client_seconds for loss in losses),
        unit="s",
        limit=max(loss.seconds for loss in losses),
        limit_name="acknowledged again",
    )


def _restart_leader(agents: Cluster, topic: str) -> tuple[float, float]:
    """Seconds to the last acknowledgement, and of these until the agent was ready."""
    victim = next(lease.agent for lease in agents.leases(topic) if lease.partition == 0)
    lost = [lease.partition for lease in agents.led_by(victim, topic)]
    killed_at = time.perf_counter()
    agents.kill(victim)
    ready_seconds = agents.start(victim)
    taken = acknowledged_at(agents.agents.values(), topic, lost)
    agents.settle(topic, PARTITIONS)
    return max(taken.values()) - killed_at, ready_seconds


def _restart_row(timings: Timings, restarts: list[tuple[float, float]]) -> Row:
    return Row(
        scenario="failover",
        name=f"kill -9 and start again, wal, {timings}: acknowledged again",
        figure=statistics.median(seconds for seconds, _ in restarts),
        unit="s",
        limit=statistics.median(ready for _, ready in restarts),
        limit_name="to its ready line",
        note="its disk may hold acknowledged records, so nobody else takes over",
    )


# --- SIGTERM ---


def _drain(run: Run, agents: Cluster, topics: Mapping[str, str]) -> dict[str, Drain]:
    """A stream to each topic at the same time, while the agent that leads something of all leaves and comes back."""
    victim = next(lease.agent for lease in agents.leases(topics["object"]) if lease.partition == 0)
    with ExitStack() as ending:
        streams = {
            durability: ending.enter_context(SteadyStream(agents.bootstrap, topic, PARTITIONS, rate=RATE))
            for durability, topic in topics.items()
        }
        began_at = time.perf_counter()
        time.sleep(run.plan.steady_seconds)
        asked_at = time.perf_counter()
        agents.stop(victim)
        stopped_at = time.perf_counter()
        time.sleep(run.plan.steady_seconds)
        started_at = time.perf_counter()
        agents.start(victim)
        for topic in topics.values():
            agents.settle(topic, PARTITIONS)
    return {
        durability: Drain(
            before=stream.waits(began_at, asked_at),
            leaving=stream.waits(asked_at, started_at),
            returning=stream.waits(started_at),
            stop_seconds=stopped_at - asked_at,
        )
        for durability, stream in streams.items()
    }


def _drain_row(name: str, drains: list[Drain]) -> Row:
    before = [wait for drain in drains for wait in drain.before]
    leaving = [wait for drain in drains for wait in drain.leaving]
    median, p99 = percentiles(before)
    return Row(
        scenario="failover",
        name=f"{name}: longest wait of a produce",
        figure=max(leaving),
        unit="s",
        goal=at_most(1.0, "s"),
        note=f"{len(leaving):,} produces while agents left; longest before that {max(before):.3f} s, while they "
        f"came back {max(wait for drain in drains for wait in drain.returning):.3f} s",
        details={
            "p99_seconds": percentiles(leaving)[1],
            "p50_before_seconds": median,
            "p99_before_seconds": p99,
            "longest_before_seconds": max(before),
            "longest_return_seconds": max(wait for drain in drains for wait in drain.returning),
            "stop_seconds": statistics.median(drain.stop_seconds for drain in drains),
        },
    )
