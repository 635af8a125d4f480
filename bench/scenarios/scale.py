"""(j) Scale: what 1, 2 and 3 agents take from the same producers, and how many objects they PUT for it."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from bench.batches import order_values
from bench.cluster import Cluster, all_cpu_seconds, cluster
from bench.native import finished
from bench.real_services import ServiceMissing
from bench.rows import Row
from bench.run import FILL_BATCH_RECORDS, FILL_VALUE_BYTES, Run
from bench.shared_storage import KEEP_OBJECTS, Put, SharedStorage, shared_storage
from bench.topics import create_topic

PARTITIONS = 24
DURABILITIES = ("object", "wal")
WARM_UP_SECONDS = 0.3
BUSY_WINDOW_SECONDS = 0.25
OBJECT_BYTES = 8 << 20
"""When an agent seals a WAL object while others are under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """The same connections in total, however many agents share them."""

    name: str
    value_bytes: int
    batch_records: int
    connections: int
    in_flight: int

    def values(self) -> Sequence[bytes]:
        return order_values(self.value_bytes, self.batch_records)

    @property
    def request_bytes(self) -> int:
        return self.value_bytes * self.batch_records


LOADS = (
    Load(name="requests of 100 B", value_bytes=100, batch_records=1, connections=96, in_flight=32),
    Load(
        name="requests of 128 KiB",
        value_bytes=FILL_VALUE_BYTES,
        batch_records=FILL_BATCH_RECORDS,
        connections=24,
        in_flight=2,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    requests_per_second: float
    cpu_seconds_per_request: float
    """Of everybody: agents, clients, database, object server."""
    ack_p50_ms: float
    cores_used: float
    wal_put: Put
    segments_put: Put
    seconds: float


def rows(run: Run) -> Iterator[Row]:
    try:
        with shared_storage() as storage:
            yield from _by_agents(run, storage)
    except ServiceMissing as missing:
        yield Row(scenario="scale", name="produce by agents", figure=None, unit="requests/s", note=str(missing))


def _by_agents(run: Run, storage: SharedStorage) -> Iterator[Row]:
    counts, loads = run.plan.agents, LOADS[: run.plan.scale_loads]
    outcomes: dict[tuple[str, Load, int], Outcome] = {}
    with cluster(storage, run.directory("scale"), *KEEP_OBJECTS) as agents:
        for count in counts:
            agents.start(*(f"a{number}" for number in range(len(agents.agents) + 1, count + 1)))
            for durability in DURABILITIES:
                if count == counts[0]:
                    create_topic(agents.bootstrap, durability, PARTITIONS, {"streamhouse.durability": durability})
                agents.settle(durability, PARTITIONS)
            for durability, load in product(DURABILITIES, loads):
                run.say(f"scale: {_agents(count)}, {durability}, {load.name}")
                outcomes[durability, load, count] = _produce(run, agents, durability, load)
    for durability, load in product(DURABILITIES, loads):
        yield from _throughput_rows(durability, load, {count: outcomes[durability, load, count] for count in counts})
    for load, count in product(loads, counts):
        yield _put_row(load, count, outcomes["object", load, count])


def _produce(run: Run, agents: Cluster, topic: str, load: Load) -> Outcome:
    """The median of the repeats; what was PUT is of all of them."""
    storage, plan = agents.storage, run.plan
    wal, segments = storage.listing("wal"), storage.listing("segments")
    turns: list[dict[str, float]] = []
    for _ in range(plan.repeats):
        turns.append(_turn(run, agents, topic, load))
    seconds = plan.repeats * (WARM_UP_SECONDS + plan.produce_seconds)
    wal_put = storage.listing("wal").put_since(wal)
    segments_put = storage.listing("segments").put_since(segments)
    for server in agents.agents.values():
        server.settle()
    return Outcome(
        requests_per_second=statistics.median(turn["requests_per_second"] for turn in turns),
        cpu_seconds_per_request=statistics.median(turn["cpu_seconds_per_request"] for turn in turns),
        ack_p50_ms=statistics.median(turn["ack_p50_ms"] for turn in turns),
        cores_used=statistics.median(turn["cores_used"] for turn in turns),
        wal_put=wal_put,
        segments_put=segments_put,
        seconds=seconds,
    )


def _turn(run: Run, agents: Cluster, topic: str, load: Load) -> dict[str, float]:
    """A client for each agent, with the partitions that it leads and its share of the connections."""
    shape = (load.connections // len(agents.agents), load.in_flight, WARM_UP_SECONDS, run.plan.produce_seconds)
    commands = []
    for name, server in agents.agents.items():
        led = [lease.partition for lease in agents.led_by(name, topic)]
        frames = run.batch_frames(f"{topic}-{name}", topic, led, load.values())
        commands.append((server.host, server.port, frames, *shape))
    used = all_cpu_seconds()
    clients = [run.native.start("requests", *command) for command in commands]
    results = [finished(client) for client in clients]
    used = all_cpu_seconds() - used
    requests_per_second = sum(result["requests"] / result["seconds"] for result in results)
    seconds = WARM_UP_SECONDS + run.plan.produce_seconds
    return {
        "requests_per_second": requests_per_second,
        "cpu_seconds_per_request": used / (requests_per_second * seconds),
        "cores_used": used / seconds,
        "ack_p50_ms": statistics.median(result["ack_p50_us"] for result in results) / 1000,
    }


def _throughput_rows(durability: str, load: Load, outcomes: dict[int, Outcome]) -> Iterator[Row]:
    """What more agents could add at most: all cores, at the processor time that a request costs with one agent."""
    cores = os.cpu_count() or 1
    first = outcomes[min(outcomes)]
    most = cores / first.cpu_seconds_per_request
    for count, outcome in outcomes.items():
        cost_us = outcome.cpu_seconds_per_request * 1e6
        yield Row(
            scenario="scale",
            name=f"{durability}, {load.name}, {_agents(count)}",
            figure=outcome.requests_per_second,
            unit="requests/s",
            limit=most,
            limit_name=f"{cores} cores, same cost",
            note=f"{cost_us:,.0f} µs of processor time each, {outcome.cores_used:.2f} cores in use",
            details={
                "of_one_agent": outcome.requests_per_second / first.requests_per_second,
                "value_mb_per_second": outcome.requests_per_second * load.request_bytes / 1e6,
                "cpu_us_per_request": cost_us,
                "cores_used": outcome.cores_used,
                "ack_p50_ms": outcome.ack_p50_ms,
            },
        )


def _put_row(load: Load, count: int, outcome: Outcome) -> Row:
    """Every agent seals an object when its window is over or 8 MiB are gathered, whichever comes first."""
    wal, segments = outcome.wal_put, outcome.segments_put
    return Row(
        scenario="scale",
        name=f"WAL objects under load, {load.name}, {_agents(count)}",
        figure=wal.objects / outcome.seconds,
        unit="PUT/s",
        limit=count / BUSY_WINDOW_SECONDS + wal.size_bytes / outcome.seconds / OBJECT_BYTES,
        limit_name="250 ms or 8 MiB",
        note=f"{_each(wal)}; and {segments.objects / outcome.seconds:.3g} segments/s, {_each(segments)}",
        details={
            "wal_bytes_per_put": wal.size_bytes / max(1, wal.objects),
            "segments_per_second": segments.objects / outcome.seconds,
            "segment_bytes_per_put": segments.size_bytes / max(1, segments.objects),
        },
    )


def _each(put: Put) -> str:
    return f"{put.size_bytes / max(1, put.objects) / 1024:,.0f} KiB each"


def _agents(count: int) -> str:
    return f"{count} agent{'s' if count > 1 else ''}"
