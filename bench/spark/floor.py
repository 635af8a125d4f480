"""(d) The shortest micro-batch: one record at a time from a topic of one partition into another, exactly once."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from confluent_kafka import OFFSET_END, Consumer, Producer, TopicPartition

from bench.rows import Row, at_most
from bench.servers import ServerFailed
from bench.spark.run import SparkRun
from bench.topics import CRITICAL, create_topic

if TYPE_CHECKING:
    from pyspark.sql.streaming import StreamingQuery

GOAL = at_most(150, "ms")
WARM_UP_RECORDS = 10
PATIENCE_SECONDS = 60.0


def rows(run: SparkRun) -> Iterator[Row]:
    run.say("floor: micro-batches of one record")
    source, target = run.new_name("floor-in"), run.new_name("floor-out")
    for name in (source, target):
        create_topic(run.node.address, name, 1)
    stream = run.topic_stream(source).select("key", "value")
    options = {"endpoint": run.endpoint, "topic": target}
    query = run.start(stream, "streamhouse", options, {"processingTime": "0 seconds"})
    try:
        latencies = _send_and_wait(run, query, source, target)
        batches = [one["durationMs"]["triggerExecution"] for one in query.recentProgress if one["numInputRows"]]
    finally:
        query.stop()
    measured = batches[-run.plan.floor_batches :]
    yield Row(
        scenario="floor",
        name="micro-batch, one partition to a topic, p50",
        figure=statistics.median(measured),
        unit="ms",
        goal=GOAL,
        details={"shortest_ms": min(measured), "longest_ms": max(measured)},
    )
    yield Row(
        scenario="floor",
        name="from produced to consumed again, p50",
        figure=statistics.median(latencies) * 1000,
        unit="ms",
        details={"longest_ms": max(latencies) * 1000},
    )


def _send_and_wait(run: SparkRun, query: StreamingQuery, source: str, target: str) -> list[float]:
    """A record when the one before it has come through; the seconds that each took, without those that warm up."""
    consumer = Consumer(
        {"bootstrap.servers": run.node.address, "group.id": "bench", "fetch.wait.max.ms": 10, "log_level": CRITICAL}
    )
    producer = Producer({"bootstrap.servers": run.node.address, "linger.ms": 0, "log_level": CRITICAL})
    consumer.assign([TopicPartition(target, 0, OFFSET_END)])
    consumer.poll(1.0)
    latencies = []
    try:
        for number in range(WARM_UP_RECORDS + run.plan.floor_batches):
            began = time.perf_counter()
            producer.produce(source, value=str(number).encode())
            producer.flush(PATIENCE_SECONDS)
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None or message.value() != str(number).encode():
                raise ServerFailed(f"record {number} did not come through: {query.exception() or message}")
            latencies.append(time.perf_counter() - began)
    finally:
        consumer.close()
    return latencies[WARM_UP_RECORDS:]
