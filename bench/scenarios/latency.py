"""(c) Latency at 1,000 requests a second: to the acknowledgement, and to a tailing consumer, beside a bare sync."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from bench.limits import Latency, bare_sync
from bench.rows import Row, at_most
from bench.run import Run
from bench.servers import serving, start_node
from bench.topics import create_topic, end_offsets

TOPIC = "bench"
RATE = 1000
WARM_UP_SECONDS = 0.5


def rows(run: Run) -> Iterator[Row]:
    run.say(f"latency at {RATE:,} requests/s")
    directory = run.directory("latency")
    frames = run.one_record_frames(TOPIC, 1)
    size_bytes = frames.stat().st_size
    seconds = run.plan.latency_seconds
    syncs: list[Latency] = []
    alone: list[dict[str, float]] = []
    tailed: list[dict[str, float]] = []
    with serving(start_node(directory / "node")) as node:
        create_topic(node.address, TOPIC, 1)
        for _ in range(run.plan.repeats):
            syncs.append(bare_sync(directory, rate=RATE, seconds=seconds / 2, size_bytes=size_bytes))
            produce = (node.host, node.port, frames, RATE, WARM_UP_SECONDS, seconds)
            alone.append(run.native.run("latency", *produce))
            [end] = end_offsets(node.address, TOPIC, 1)
            tailed.append(run.native.run("latency", *produce, TOPIC, end))
    sync = Latency(
        p50_us=statistics.median(one.p50_us for one in syncs), p99_us=statistics.median(one.p99_us for one in syncs)
    )
    yield _row("acknowledgement p50", alone, "ack_p50_us", sync.p50_us)
    yield _row("acknowledgement p99", alone, "ack_p99_us", sync.p99_us)
    yield _row("end to end p50", tailed, "arrival_p50_us", 2 * sync.p50_us + 1000, "2 x bare sync + 1 ms", judged=True)
    yield _row("end to end p99", tailed, "arrival_p99_us", sync.p99_us)


def _row(
    name: str,
    results: list[dict[str, float]],
    key: str,
    limit: float,
    limit_name: str = "bare write + fdatasync",
    *,
    judged: bool = False,
) -> Row:
    return Row(
        scenario="latency",
        name=name,
        figure=statistics.median(result[key] for result in results),
        unit="µs",
        limit=limit,
        limit_name=limit_name,
        goal=at_most(1.0) if judged else None,
    )
