"""(f) Apache Kafka from its jars on the same clients, with its defaults and with a flush for every batch."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.apache_kafka import KafkaMissing, fetch_kafka, start_kafka
from bench.rows import Row, at_least
from bench.run import Run
from bench.scenarios.produce import Load, Outcome, median_outcome, produce_checked
from bench.servers import Server, serving, start_node

LOADS = (Load(value_bytes=100, codec="none", partitions=4), Load(value_bytes=1024, codec="none", partitions=4))
SMALL_SHAPE = (32, 5)
"""Connections, and requests in flight on each."""
FLUSHED = "log.flush.interval.messages=1"
VARIANTS = (("its defaults", (), at_least(1.0)), ("a flush per batch", (FLUSHED,), at_least(2.0)))


def rows(run: Run) -> Iterator[Row]:
    if not run.plan.peers:
        yield _missing("left out of the quick form")
        return
    run.say("Apache Kafka: its jars")
    try:
        jars = fetch_kafka(run.out / "kafka")
    except KafkaMissing as missing:
        yield _missing(str(missing))
        return
    directory = run.directory("kafka")
    for index, (name, settings, goal) in enumerate(VARIANTS):
        with (
            serving(start_node(directory / f"node-{index}")) as node,
            serving(start_kafka(jars, directory / f"kafka-{index}", settings)) as kafka,
        ):
            for load in LOADS:
                run.say(f"beside Apache Kafka, {name}: {load}")
                ours, theirs = _take_turns(run, node, kafka, load)
                yield Row(
                    scenario="kafka",
                    name=f"{load}, Kafka with {name}",
                    figure=ours.records_per_second,
                    unit="records/s",
                    limit=theirs.records_per_second,
                    limit_name="Apache Kafka",
                    goal=goal,
                    details={
                        "cpu_ratio": ours.server_cpu / ours.client_cpu,
                        "kafka_cpu_ratio": theirs.server_cpu / theirs.client_cpu,
                    },
                )
            yield _small_requests(run, node, kafka, name)


def _take_turns(run: Run, node: Server, kafka: Server, load: Load) -> tuple[Outcome, Outcome]:
    outcomes: dict[Server, list[Outcome]] = {node: [], kafka: []}
    for repeat in range(1 + run.plan.repeats):
        for server, measured in outcomes.items():
            measured.append(produce_checked(run, server, _topic(load, repeat), load))
            server.settle()
    # The first turn only warms up: a Java virtual machine has to compile what is hot.
    return median_outcome(outcomes[node][1:]), median_outcome(outcomes[kafka][1:])


def _small_requests(run: Run, node: Server, kafka: Server, name: str) -> Row:
    """One record a request, to a topic that both have from before: where a flush cannot hide behind a large batch."""
    run.say(f"beside Apache Kafka, {name}: small requests")
    frames = run.one_record_frames(_topic(LOADS[0], 0), LOADS[0].partitions)
    rates: dict[Server, list[float]] = {node: [], kafka: []}
    for _ in range(run.plan.repeats):
        for server, measured in rates.items():
            arguments = (server.host, server.port, frames, *SMALL_SHAPE, 0.3, run.plan.request_seconds)
            result = run.native.run("requests", *arguments)
            measured.append(result["requests"] / result["seconds"])
            server.settle()
    return Row(
        scenario="kafka",
        name=f"small requests, Kafka with {name}",
        figure=statistics.median(rates[node]),
        unit="requests/s",
        limit=statistics.median(rates[kafka]),
        limit_name="Apache Kafka",
    )


def _topic(load: Load, repeat: int) -> str:
    return f"bench-{load.value_bytes}-{repeat}"


def _missing(reason: str) -> Row:
    return Row(scenario="kafka", name="beside Apache Kafka", figure=None, unit="records/s", note=reason)
