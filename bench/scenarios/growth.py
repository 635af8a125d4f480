"""(e) Growth: latency with many partitions, fetches among many segments, start-up, recovery of the WAL."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.batches import order_values, produce_frame, record_batch
from bench.limits import checked_read_bytes_per_second
from bench.rows import Row, at_least, at_most
from bench.run import Run
from bench.servers import Server, ServerFailed, serving, start_node
from bench.topics import create_topic, end_offsets

TOPIC = "bench"
RATE = 1000
WARM_UP_SECONDS = 0.5
FEW_SEGMENTS = 10
SEGMENT_FLAGS = ("--segment-bytes", "1KiB")
FILL_PATIENCE_SECONDS = 180
RECOVERY_PARTITIONS = 16
FLAT = at_most(1.3)
MB = 1_000_000
SHORTEST_SECONDS = 0.01
"""Less than this cannot be told from the noise of a start."""


def rows(run: Run) -> Iterator[Row]:
    yield from _partitions(run)
    yield from _segments(run)
    yield from _recovery(run)


def _partitions(run: Run) -> Iterator[Row]:
    many = run.plan.many_partitions
    run.say(f"growth: produce with 1 and {many:,} partitions")
    directory = run.directory("partitions")
    empty_start = _start_seconds(run, directory / "empty")
    data_dir = directory / "node"
    results: dict[int, list[dict[str, float]]] = {1: [], many: []}
    with serving(start_node(data_dir)) as node:
        frames = {}
        for count in results:
            create_topic(node.address, f"{TOPIC}-{count}", count)
            frames[count] = run.one_record_frames(f"{TOPIC}-{count}", count)
        for _ in range(run.plan.repeats):
            for count, measured in results.items():
                load = (frames[count], RATE, WARM_UP_SECONDS, run.plan.latency_seconds)
                measured.append(run.native.run("latency", node.host, node.port, *load))
        node.stop()
    for percentile in ("p50", "p99"):
        key = f"ack_{percentile}_us"
        yield Row(
            scenario="growth",
            name=f"ack {percentile} with {many:,} partitions",
            figure=statistics.median(result[key] for result in results[many]),
            unit="µs",
            limit=statistics.median(result[key] for result in results[1]),
            limit_name="1 partition",
            goal=FLAT if percentile == "p50" else None,
        )
    yield _start_row(f"start-up with {many:,} partitions", _start_seconds(run, data_dir), empty_start)


def _segments(run: Run) -> Iterator[Row]:
    many = run.plan.many_segments
    run.say(f"growth: fetch at {FEW_SEGMENTS} and {many:,} segments")
    directory = run.directory("segments")
    ends: dict[int, int] = {}
    for count in (FEW_SEGMENTS, many):
        data_dir = directory / f"node-{count}"
        with serving(start_node(data_dir, *SEGMENT_FLAGS)) as node:
            create_topic(node.address, TOPIC, 1)
            ends[count] = _write_segments(run, node, data_dir, count)
            node.stop()
    starts: dict[int, list[float]] = {count: [] for count in ends}
    found: dict[int, list[dict[str, float]]] = {count: [] for count in ends}
    for _ in range(run.plan.repeats):
        for count, end in ends.items():
            with serving(start_node(directory / f"node-{count}", *SEGMENT_FLAGS)) as node:
                starts[count].append(node.start_seconds)
                offsets = ",".join(str(end * index // FEW_SEGMENTS) for index in range(FEW_SEGMENTS))
                found[count].append(run.native.run("lookup", node.host, node.port, TOPIC, offsets, 100))
                node.stop()
    for name, key in (("cold fetch p50", "first_p50_us"), ("cached fetch p50", "later_p50_us")):
        yield Row(
            scenario="growth",
            name=f"{name} at {many:,} segments",
            figure=statistics.median(result[key] for result in found[many]),
            unit="µs",
            limit=statistics.median(result[key] for result in found[FEW_SEGMENTS]),
            limit_name=f"{FEW_SEGMENTS} segments",
            goal=FLAT,
        )
    medians = {count: statistics.median(taken) for count, taken in starts.items()}
    yield _start_row(f"start-up with {many:,} segments", medians[many], medians[FEW_SEGMENTS])


def _write_segments(run: Run, node: Server, data_dir: Path, count: int) -> int:
    """Writes batches larger than a segment until the store holds that many segments; returns the end offset."""
    frames = data_dir.parent / "segments.frames"
    frames.write_bytes(produce_frame(TOPIC, 0, record_batch(order_values(2048, 1))))
    deadline = time.monotonic() + FILL_PATIENCE_SECONDS
    while (missing := count - _stored_segments(data_dir)) > 0:
        if time.monotonic() > deadline:
            raise ServerFailed(f"{count - missing} of {count} segments were written in {FILL_PATIENCE_SECONDS} s")
        run.native.run("requests", node.host, node.port, frames, 1, 1, 0, FILL_PATIENCE_SECONDS, missing)
        node.settle(patience_seconds=FILL_PATIENCE_SECONDS)
    [end] = end_offsets(node.address, TOPIC, 1)
    return end


def _stored_segments(data_dir: Path) -> int:
    return sum(1 for _ in (data_dir / "objects").rglob("*.strm"))


def _recovery(run: Run) -> Iterator[Row]:
    directory = run.directory("recovery")
    recovered = {
        size_bytes: _recover(run, directory / f"node-{size_bytes >> 20}", size_bytes)
        for size_bytes in run.plan.recovery_bytes
    }
    smallest, largest = min(recovered), max(recovered)
    ours = recovered[largest]
    yield Row(
        scenario="growth",
        name=f"recovery of {largest >> 20} MiB of WAL",
        figure=ours.bytes_per_second / MB,
        unit="MB/s",
        goal=at_least(300, "MB/s"),
        details={"read_and_crc_mb_per_second": ours.limit / MB},
    )
    yield Row(
        scenario="growth",
        name=f"recovery time per GiB, {largest >> 20} MiB of WAL",
        figure=2**30 / ours.bytes_per_second,
        unit="s/GiB",
        limit=2**30 / recovered[smallest].bytes_per_second,
        limit_name=f"{smallest >> 20} MiB of WAL",
        goal=FLAT,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    bytes_per_second: float
    limit: float


def _recover(run: Run, data_dir: Path, size_bytes: int) -> Recovery:
    """Kills a node that has everything in its WAL and nothing in the store, and times its next start."""
    run.say(f"growth: recovery of {size_bytes >> 20} MiB of WAL")
    # Segments that never fill nor age, budgets that hold all of it, and so few WAL files that none is given up.
    budgets = ("--buffer-bytes", str(4 * size_bytes), "--partition-buffer-bytes", str(size_bytes))
    patience = ("--segment-bytes", "100MiB", "--segment-age", "1d", "--wal-file-bytes", str(size_bytes))
    flags = (*patience, *budgets)
    with serving(start_node(data_dir, *flags)) as node:
        empty_start = node.start_seconds
        create_topic(node.address, TOPIC, RECOVERY_PARTITIONS)
        written = run.fill(node, TOPIC, RECOVERY_PARTITIONS, size_bytes)
        before = end_offsets(node.address, TOPIC, RECOVERY_PARTITIONS)
        node.kill()
    if uploaded := _stored_segments(data_dir):
        raise ServerFailed(f"{uploaded} segments were uploaded: the WAL no longer holds everything")
    limit = checked_read_bytes_per_second(sorted(path for path in (data_dir / "wal").rglob("*") if path.is_file()))
    with serving(start_node(data_dir, *flags)) as node:
        seconds = max(node.start_seconds - empty_start, SHORTEST_SECONDS)
        if end_offsets(node.address, TOPIC, RECOVERY_PARTITIONS) != before:
            raise ServerFailed("the recovered log does not end where it ended before the kill")
    return Recovery(bytes_per_second=written / seconds, limit=limit)


def _start_seconds(run: Run, data_dir: Path, *flags: str) -> float:
    taken = []
    for _ in range(run.plan.repeats):
        with serving(start_node(data_dir, *flags)) as node:
            taken.append(node.start_seconds)
            node.stop()
    return statistics.median(taken)


def _start_row(name: str, seconds: float, limit: float) -> Row:
    return Row(
        scenario="growth", name=name, figure=seconds, unit="s", limit=limit, limit_name="with few or none", goal=FLAT
    )
