"""(j) A cluster with little to do: what many idle partitions cost, how fast they start, how long one record takes."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator

from bench.cluster import Cluster, cluster
from bench.real_services import ServiceMissing
from bench.rows import Row, at_most
from bench.run import Run
from bench.servers import ServerFailed
from bench.shared_storage import KEEP_OBJECTS, SharedStorage, percentiles, shared_storage
from bench.single_produce import acknowledged_at
from bench.topics import create_topic

AGENTS = ("a1", "a2", "a3")
TOPIC = "idle"
TRICKLE = "trickle"
TRICKLE_PARTITIONS = 6
WINDOW_SECONDS = 0.01
"""How long an idle agent waits for company of a first batch."""
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.5
BARE = 200
"""PUTs and commits that are measured without a broker."""


def rows(run: Run) -> Iterator[Row]:
    try:
        with shared_storage() as storage, cluster(storage, run.directory("idle"), *KEEP_OBJECTS) as agents:
            empty_seconds = agents.start(*AGENTS)
            yield from _idle(run, storage, agents)
            yield from _trickle(run, storage, agents)
            yield _start(run, agents, empty_seconds)
    except ServiceMissing as missing:
        yield Row(scenario="scale", name="idle cluster", figure=None, unit="objects", note=str(missing))


def _idle(run: Run, storage: SharedStorage, agents: Cluster) -> Iterator[Row]:
    many, seconds = run.plan.cluster_partitions, run.plan.idle_seconds
    run.say(f"scale: {many:,} idle partitions for {seconds:g} s")
    create_topic(agents.bootstrap, TOPIC, many, {"streamhouse.durability": "object", "segment.ms": "1000"})
    agents.settle(TOPIC, many)
    _wait_until_uploaded(storage, many)
    before, used = storage.listing(), agents.cpu_seconds()
    time.sleep(seconds)
    used = agents.cpu_seconds() - used
    put = storage.listing().put_since(before)
    yield Row(
        scenario="scale",
        name=f"{many:,} idle partitions, {len(AGENTS)} agents: objects in {seconds:g} s",
        figure=put.objects,
        unit="objects",
        goal=at_most(0, "objects"),
    )
    yield Row(
        scenario="scale",
        name=f"{many:,} idle partitions: processor time of an agent",
        figure=used / seconds / len(AGENTS) * 1000,
        unit="ms a second",
    )


def _wait_until_uploaded(storage: SharedStorage, segments: int) -> None:
    """Each partition has the record with which it showed that it is led; that becomes a segment, and then all rest."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (uploaded := len(storage.listing("segments"))) < segments:
        if time.monotonic() > deadline:
            raise ServerFailed(f"{uploaded} of {segments} partitions have a segment")
        time.sleep(PAUSE_SECONDS)


def _trickle(run: Run, storage: SharedStorage, agents: Cluster) -> Iterator[Row]:
    """One producer, one record at a time, each waiting for the acknowledgement of the one before."""
    run.say("scale: one record at a time, object")
    create_topic(agents.bootstrap, TRICKLE, TRICKLE_PARTITIONS, {"streamhouse.durability": "object"})
    agents.settle(TRICKLE, TRICKLE_PARTITIONS)
    leader = next(lease.agent for lease in agents.leases(TRICKLE) if lease.partition == 0)
    server = agents.agents[leader]
    frames = run.one_record_frames(TRICKLE, 1)
    acks: list[dict[str, float]] = []
    puts: list[float] = []
    commits: list[float] = []
    before = storage.listing("wal")
    for _ in range(run.plan.repeats):
        puts += storage.bare_put_seconds(frames.stat().st_size, BARE // run.plan.repeats)
        commits += storage.bare_commit_seconds(BARE // run.plan.repeats)
        acks.append(run.native.run("requests", server.host, server.port, frames, 1, 1, 0, run.plan.latency_seconds))
    put = storage.listing("wal").put_since(before)
    put_p50, put_p99 = percentiles(puts)
    commit_p50, commit_p99 = percentiles(commits)
    records = sum(ack["requests"] for ack in acks)
    details = {"bare_put_p50_ms": put_p50 * 1000, "bare_commit_p50_ms": commit_p50 * 1000}
    for name, bare_seconds in (("p50", put_p50 + commit_p50), ("p99", put_p99 + commit_p99)):
        yield Row(
            scenario="scale",
            name=f"object, one record at a time: acknowledgement {name}",
            figure=statistics.median(ack[f"ack_{name}_us"] for ack in acks) / 1000,
            unit="ms",
            limit=(WINDOW_SECONDS + bare_seconds) * 1000,
            limit_name="10 ms + PUT + commit",
            details=details,
        )
    yield Row(
        scenario="scale",
        name="object, one record at a time: WAL objects",
        figure=put.objects / (run.plan.repeats * run.plan.latency_seconds),
        unit="PUT/s",
        note=f"{put.objects / records:.2f} for each record, {put.size_bytes / max(1, put.objects):,.0f} bytes each",
        details={"puts_per_record": put.objects / records},
    )


def _start(run: Run, agents: Cluster, empty_seconds: float) -> Row:
    """The whole cluster is stopped and started: until every partition takes records again."""
    many = run.plan.cluster_partitions
    run.say(f"scale: start of a cluster with {many:,} partitions")
    agents.stop(*AGENTS)
    started = time.perf_counter()
    ready_seconds = agents.start(*AGENTS)
    taken = acknowledged_at(agents.agents.values(), TOPIC, range(many))
    return Row(
        scenario="scale",
        name=f"start of {len(AGENTS)} agents, {many:,} partitions take records",
        figure=max(taken.values()) - started,
        unit="s",
        limit=empty_seconds,
        limit_name="ready with none",
        details={"ready_seconds": ready_seconds},
    )
