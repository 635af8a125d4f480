"""(f) Apache Kafka from its jars on the same client, with its defaults and with a flush for every batch."""

from __future__ import annotations

from collections.abc import Iterator

from bench.apache_kafka import KafkaMissing, fetch_jars, start_kafka
from bench.rows import Row, at_least
from bench.run import Run
from bench.scenarios.produce import Load, Outcome, median_outcome, produce_checked
from bench.servers import Server, serving, start_node

LOADS = (Load(value_bytes=100, codec="none", partitions=4), Load(value_bytes=1024, codec="none", partitions=4))
FLUSHED = "log.flush.interval.messages=1"
VARIANTS = (("default", (), at_least(1.0)), ("flush per batch", (FLUSHED,), at_least(2.0)))


def rows(run: Run) -> Iterator[Row]:
    if not run.plan.peers:
        yield _missing("left out of the quick form")
        return
    run.say("Apache Kafka: its jars")
    try:
        jars = fetch_jars(run.out / "kafka")
    except KafkaMissing as missing:
        yield _missing(str(missing))
        return
    directory = run.directory("kafka")
    with serving(start_node(directory / "node")) as node:
        ours = {load: _measure(run, node, load, "streamhouse") for load in LOADS}
    for index, (name, settings, goal) in enumerate(VARIANTS):
        with serving(start_kafka(jars, directory / f"kafka-{index}", settings)) as kafka:
            for load in LOADS:
                theirs = _measure(run, kafka, load, f"Apache Kafka, {name}")
                yield Row(
                    scenario="kafka",
                    name=f"{load} beside Kafka, {name}",
                    figure=ours[load].records_per_second,
                    unit="records/s",
                    limit=theirs.records_per_second,
                    limit_name=f"Apache Kafka, {name}",
                    goal=goal,
                    details={
                        "cpu_ratio": ours[load].server_cpu / ours[load].client_cpu,
                        "kafka_cpu_ratio": theirs.server_cpu / theirs.client_cpu,
                    },
                )


def _measure(run: Run, server: Server, load: Load, name: str) -> Outcome:
    run.say(f"{name}: {load}")
    topic = f"bench-{load.value_bytes}"
    # The first run only warms up: a Java virtual machine has to compile what is hot.
    outcomes = [produce_checked(run, server, f"{topic}-{repeat}", load) for repeat in range(run.plan.repeats + 1)]
    server.settle()
    return median_outcome(outcomes[1:])


def _missing(reason: str) -> Row:
    return Row(scenario="kafka", name="beside Apache Kafka", figure=None, unit="records/s", note=reason)
