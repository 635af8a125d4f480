"""(d) A node with company: a tailing consumer beside a catch-up of another, and memory at many connections."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.connections import open_connections
from bench.native import finished
from bench.rows import Row
from bench.run import Run
from bench.scenarios.consume import FETCH_BYTES, PARTITIONS, TOPIC
from bench.servers import serving, start_node
from bench.topics import create_topic, end_offsets

TAILED = "bench-tail"
RATE = 1000
WARM_UP_SECONDS = 0.5


def rows(run: Run) -> Iterator[Row]:
    yield from _tail_beside_catch_up(run)
    yield _memory_of_connections(run)


def _tail_beside_catch_up(run: Run) -> Iterator[Row]:
    run.say("consume: a tail beside a catch-up")
    frames = run.one_record_frames(TAILED, 1)
    seconds = run.plan.latency_seconds
    alone: list[dict[str, float]] = []
    beside: list[dict[str, float]] = []
    with serving(start_node(run.directory("tail") / "node")) as node:
        create_topic(node.address, TOPIC, PARTITIONS)
        create_topic(node.address, TAILED, 1)
        run.fill(node, TOPIC, PARTITIONS, run.plan.consume_bytes)
        node.settle()
        ends = ",".join(map(str, end_offsets(node.address, TOPIC, PARTITIONS)))
        for _ in range(run.plan.repeats):
            for results in (alone, beside):
                [end] = end_offsets(node.address, TAILED, 1)
                tail = (node.host, node.port, frames, RATE, WARM_UP_SECONDS, seconds, TAILED, end)
                if results is alone:
                    results.append(run.native.run("latency", *tail))
                    continue
                during = WARM_UP_SECONDS + seconds
                reader = run.native.start("fetch", node.host, node.port, TOPIC, ends, 1, FETCH_BYTES, during)
                results.append(run.native.run("latency", *tail))
                finished(reader)
    for name, key in (("tail arrival", "arrival"), ("producer ack", "ack")):
        for percentile in ("p50", "p99"):
            yield Row(
                scenario="consume",
                name=f"{name} {percentile} beside a catch-up",
                figure=statistics.median(result[f"{key}_{percentile}_us"] for result in beside),
                unit="µs",
                limit=statistics.median(result[f"{key}_{percentile}_us"] for result in alone),
                limit_name="the same alone",
            )


def _memory_of_connections(run: Run) -> Row:
    count = run.plan.connections
    run.say(f"memory at {count} connections")
    with serving(start_node(run.directory("connections") / "node")) as node:
        with open_connections(node.host, node.port, 1):
            before = node.rss_bytes()
        with open_connections(node.host, node.port, count):
            after = node.rss_bytes()
    return Row(
        scenario="consume",
        name=f"memory at {count:,} connections",
        figure=(after - before) / count / 1024,
        unit="KiB each",
        details={"rss_before_mib": before / 2**20, "rss_after_mib": after / 2**20},
    )
