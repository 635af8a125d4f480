"""(a) Topics as tables: batch and streaming reads beside the same Arrow batches from memory through the same plan."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from bench.rows import Row, at_least
from bench.servers import ServerFailed
from bench.spark.comparison import beside, per_cpu_second
from bench.spark.plan import Topic
from bench.spark.processor import Cost
from bench.spark.run import SparkRun, shortened

BATCH_GOAL = at_least(0.8)
STREAM_GOAL = at_least(0.6)
PEER_GOAL = at_least(3.0)
SKEW_GOAL = at_least(0.8)
MEMORY = "the same from memory"


def rows(run: SparkRun) -> Iterator[Row]:
    for topic in run.plan.topics:
        name = run.filled(topic)
        _check(run.topic(name).count(), topic)
        yield from _batch(run, topic, name)
        yield from _stream(run, topic, name)
    yield from _skew(run, run.plan.topics[0])


def _batch(run: SparkRun, topic: Topic, name: str) -> Iterator[Row]:
    missing = run.connector_missing or _connector_problem(run, name)
    for title, finish in QUERIES.items():
        run.say(f"source: batch, {title}, {topic.values}")
        works = {
            "ours": partial(finish, run.topic(name), topic),
            "memory": partial(finish, run.memory(name), topic),
        }
        is_compared = finish is _drain
        if is_compared and not missing:
            works["kafka"] = partial(finish, _with_connector(run, name), topic)
        costs = run.take_turns(works)
        yield from beside(
            "source", f"batch, {title}, {topic.values}", costs["ours"], costs["memory"], MEMORY, BATCH_GOAL
        )
        if is_compared:
            yield _peer_row(f"batch, {title}, {topic.values}", costs["ours"], costs.get("kafka"), missing)


def _stream(run: SparkRun, topic: Topic, name: str) -> Iterator[Row]:
    run.say(f"source: AvailableNow, {topic.values}")

    def ours() -> int:
        return _check(run.finish(run.topic_stream(name), "noop"), topic)

    def memory() -> int:
        return _check(run.finish(run.memory_stream(name), "noop"), topic)

    costs = run.take_turns({"ours": ours, "memory": memory})
    yield from beside("source", f"AvailableNow, {topic.values}", costs["ours"], costs["memory"], MEMORY, STREAM_GOAL)


def _skew(run: SparkRun, topic: Topic) -> Iterator[Row]:
    """One partition of the topic has everything."""
    run.say("source: a skewed topic")
    name = run.fill(topic, partitions=1, name="skewed")
    even = run.topic(topic.name)
    skewed = run.topic(name)
    costs = run.take_turns({"even": partial(_drain, even, topic), "skewed": partial(_drain, skewed, topic)})
    yield Row(
        scenario="source",
        name="all in one partition",
        figure=costs["skewed"].per_second,
        unit="rows/s",
        limit=costs["even"].per_second,
        limit_name=f"over {run.plan.partitions} partitions",
        goal=SKEW_GOAL,
        note=f"{skewed.rdd.getNumPartitions()} tasks, {costs['skewed'].cores_used:.1f} of {os.cpu_count()} cores",
    )


def _drain(frame: DataFrame, topic: Topic) -> int:
    """Every column of every row to the JVM, and there to nowhere."""
    frame.write.format("noop").mode("overwrite").save()
    return topic.records


def _count(frame: DataFrame, topic: Topic) -> int:
    return _check(frame.count(), topic)


def _check(count: int, topic: Topic) -> int:
    if count != topic.records:
        raise ServerFailed(f"a query saw {count:,} of {topic.records:,} records")
    return count


def _with_connector(run: SparkRun, name: str) -> DataFrame:
    reader = run.spark.read.format("kafka").option("kafka.bootstrap.servers", run.node.address)
    return reader.option("subscribe", name).option("startingOffsets", "earliest").load()


def _connector_problem(run: SparkRun, name: str) -> str:
    try:
        _with_connector(run, name).limit(1).collect()
    except PySparkException as problem:
        return f"not measured: it does not work with this node: {shortened(problem)}"
    return ""


def _peer_row(name: str, ours: Cost, theirs: Cost | None, missing: str) -> Row:
    title = f"{name}, beside Spark's Kafka source"
    if theirs is None:
        return Row(scenario="source", name=title, figure=None, unit="rows", note=missing)
    return per_cpu_second("source", title, ours, theirs, "the connector", PEER_GOAL)


QUERIES = {"all columns": _drain, "count": _count}
"""What is done with the rows: each of their columns is used, or none."""
