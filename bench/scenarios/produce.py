"""(a) Batched produce with confluent-kafka: records a second beside the sink in C, and CPU beside the client's."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from bench.confluent_client import measure_produce
from bench.rows import Row, at_least, at_most
from bench.run import Run
from bench.servers import Server, ServerFailed, serving, start_node, start_sink
from bench.topics import create_topic, end_offsets

SINK_TOPIC = "bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    value_bytes: int
    codec: str
    partitions: int

    def __str__(self) -> str:
        return f"{self.value_bytes} B, {self.codec}, {self.partitions} partition{'s' if self.partitions > 1 else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    records: float
    records_per_second: float
    server_cpu: float
    client_cpu: float


def produce(run: Run, server: Server, topic: str, load: Load) -> Outcome:
    before = server.cpu_seconds()
    client = measure_produce(
        server.address, topic, load.partitions, load.value_bytes, load.codec, run.plan.produce_seconds
    )
    return Outcome(
        records=client["records"],
        records_per_second=client["records"] / client["seconds"],
        server_cpu=server.cpu_seconds() - before,
        client_cpu=client["cpu_seconds"],
    )


def produce_checked(run: Run, server: Server, topic: str, load: Load) -> Outcome:
    """The same on a server that keeps the records: its log must have grown by what the client counted."""
    create_topic(server.address, topic, load.partitions)
    outcome = produce(run, server, topic, load)
    stored = sum(end_offsets(server.address, topic, load.partitions))
    if stored < outcome.records:
        raise ServerFailed(f"{outcome.records:.0f} records were sent to {topic}, but it holds {stored}")
    return outcome


def median_outcome(outcomes: list[Outcome]) -> Outcome:
    return Outcome(
        records=statistics.median(outcome.records for outcome in outcomes),
        records_per_second=statistics.median(outcome.records_per_second for outcome in outcomes),
        server_cpu=statistics.median(outcome.server_cpu for outcome in outcomes),
        client_cpu=statistics.median(outcome.client_cpu for outcome in outcomes),
    )


def rows(run: Run) -> Iterator[Row]:
    plan = run.plan
    loads = [
        Load(value_bytes=value_bytes, codec=codec, partitions=partitions)
        for value_bytes in plan.value_bytes
        for codec in plan.codecs
        for partitions in plan.partitions
    ]
    for index, load in enumerate(loads):
        run.say(f"produce: {load}")
        ours, limit = _beside_sink(run, f"produce-{index}", load)
        yield from _rows_of(load, ours, limit)


def _beside_sink(run: Run, name: str, load: Load) -> tuple[Outcome, Outcome]:
    directory = run.directory(name)
    ours, limit = [], []
    with (
        serving(start_sink(run.native.path("sink"), directory, SINK_TOPIC, load.partitions)) as sink,
        serving(start_node(directory / "node")) as node,
    ):
        for repeat in range(run.plan.repeats):
            limit.append(produce(run, sink, SINK_TOPIC, load))
            ours.append(produce_checked(run, node, f"bench-{repeat}", load))
            node.settle()
    return median_outcome(ours), median_outcome(limit)


def _rows_of(load: Load, ours: Outcome, limit: Outcome) -> Iterator[Row]:
    yield Row(
        scenario="produce",
        name=str(load),
        figure=ours.records_per_second,
        unit="records/s",
        limit=limit.records_per_second,
        limit_name="sink in C",
        goal=at_least(0.8),
        details={"value_mb_per_second": ours.records_per_second * load.value_bytes / 1e6},
    )
    yield Row(
        scenario="produce",
        name=f"{load}: broker CPU",
        figure=ours.server_cpu,
        unit="s",
        limit=ours.client_cpu,
        limit_name="client CPU",
        goal=at_most(0.2) if load.value_bytes == 100 else None,
        details={"sink_cpu_ratio": limit.server_cpu / limit.client_cpu},
    )
