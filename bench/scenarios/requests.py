"""(b) Small produce requests from the raw client: requests a second beside the sink in C."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from bench.rows import Row, at_least
from bench.run import Run
from bench.servers import Server, serving, start_node, start_sink
from bench.topics import create_topic

TOPIC = "bench"
PARTITIONS = 4
SHAPES = ((1, 1), (1, 5), (32, 1), (32, 5))
"""Connections, and requests in flight on each."""


def rows(run: Run) -> Iterator[Row]:
    directory = run.directory("requests")
    frames = run.one_record_frames(TOPIC, PARTITIONS)
    with (
        serving(start_sink(run.native.path("sink"), directory, TOPIC, PARTITIONS)) as sink,
        serving(start_node(directory / "node")) as node,
    ):
        create_topic(node.address, TOPIC, PARTITIONS)
        for connections, in_flight in SHAPES:
            run.say(f"small requests: {connections} connections, {in_flight} in flight")
            yield _row(run, node, sink, frames, connections, in_flight)


def _row(run: Run, node: Server, sink: Server, frames: Path, connections: int, in_flight: int) -> Row:
    ours: list[dict[str, float]] = []
    limit: list[dict[str, float]] = []
    for _ in range(run.plan.repeats):
        for server, results in ((sink, limit), (node, ours)):
            arguments = (server.host, server.port, frames, connections, in_flight, 0.3, run.plan.request_seconds)
            results.append(run.native.run("requests", *arguments))
        node.settle()
    return Row(
        scenario="requests",
        name=f"{connections} connection{'s' if connections > 1 else ''}, {in_flight} in flight",
        figure=statistics.median(result["requests"] / result["seconds"] for result in ours),
        unit="requests/s",
        limit=statistics.median(result["requests"] / result["seconds"] for result in limit),
        limit_name="sink in C",
        goal=at_least(0.5),
        details={
            "ack_p50_us": statistics.median(result["ack_p50_us"] for result in ours),
            "ack_p99_us": statistics.median(result["ack_p99_us"] for result in ours),
            "sink_ack_p50_us": statistics.median(result["ack_p50_us"] for result in limit),
        },
    )
