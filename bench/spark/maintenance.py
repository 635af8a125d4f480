"""(c) Jobs whose rows are pointers: merge, export and compact, beside the same data copied in one plain process."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.rows import Row, at_least
from bench.servers import ServerFailed
from bench.spark import plain_python
from bench.spark.processor import Cost, middle
from bench.spark.run import SparkRun
from streamhouse.spark.jobs.compact import Compaction, compact
from streamhouse.spark.jobs.export.job import Export, export
from streamhouse.spark.jobs.merge import Merging, merge
from streamhouse.spark.options import Connection, Options

ENOUGH = 1_200_000
"""Rows per CPU-second at 100 bytes; less is enough where plain Python itself does not get there."""
OF_PLAIN = 0.8
SEGMENTS_OF_PARTITION = 16
ROUNDS = 4
MOST_REPEATS = 2
"""Filling a topic takes longer than all jobs on it."""
COPIES_OF_KEY = 2
PLAIN_FORMATS = {"merge": plain_python.ARROW, "export": plain_python.PARQUET, "compact": plain_python.ARROW}


def rows(run: SparkRun) -> Iterator[Row]:
    topic = run.plan.maintained
    costs: dict[str, list[Cost]] = {name: [] for name in PLAIN_FORMATS}
    plain: dict[str, list[Cost]] = {name: [] for name in PLAIN_FORMATS}
    repeats = min(run.plan.repeats, MOST_REPEATS)
    turns = run.plan.warm_ups + repeats
    for turn in range(turns):
        run.say(f"jobs: turn {turn + 1} of {turns}, {topic.records:,} records with values of {topic.values}")
        # A job leaves nothing to do for its next turn, which therefore has a topic of its own.
        name = run.new_name("maintained")
        run.fill(
            topic,
            partitions=run.plan.partitions,
            name=name,
            copies_of_key=COPIES_OF_KEY,
            rounds=ROUNDS,
            config=_config(run),
        )
        for job, cost in _one_turn(run, name):
            costs[job].append(cost)
            plain[job].append(_plain(run, job, name))
    for job, measured in costs.items():
        warm = measured[turns - repeats :]
        yield _row(f"{job}, {topic.values}", middle(warm), middle(plain[job]))


def _config(run: SparkRun) -> dict[str, str]:
    """Small segments, for there must be something to merge."""
    topic = run.plan.maintained
    segment_bytes = topic.records * topic.value_bytes // (run.plan.partitions * SEGMENTS_OF_PARTITION)
    return {"segment.bytes": str(segment_bytes), "cleanup.policy": "compact", "min.compaction.lag.ms": "0"}


def _one_turn(run: SparkRun, name: str) -> Iterator[tuple[str, Cost]]:
    yield "merge", run.cost_of(partial(_merge, run, name))
    yield "export", run.cost_of(partial(_export, run, name))
    yield "compact", run.cost_of(partial(_compact, run, name))


def _merge(run: SparkRun, name: str) -> int:
    swaps = merge(run.spark, Merging(connection=_connection(run), topics=[name]))
    return _worked_on("merge", sum(swap.records_before for swap in swaps))


def _compact(run: SparkRun, name: str) -> int:
    swaps = compact(run.spark, Compaction(connection=_connection(run), topics=[name]))
    return _worked_on("compact", sum(swap.records_before for swap in swaps))


def _export(run: SparkRun, name: str) -> int:
    target = run.directory(run.new_name("exported"))
    job = Export(connection=_connection(run), topic=name, format="parquet", location=str(target))
    try:
        return _worked_on("export", export(run.spark, job).rows)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _worked_on(job: str, records: int) -> int:
    if not records:
        raise ServerFailed(f"{job} found nothing to do")
    return records


def _plain(run: SparkRun, job: str, name: str) -> Cost:
    kept = Path(run.kept(name))
    target = run.directory("plain")
    try:
        return plain_python.measure(PLAIN_FORMATS[job], kept, target)
    finally:
        shutil.rmtree(target, ignore_errors=True)


def _connection(run: SparkRun) -> Connection:
    return Connection.parse(Options({"endpoint": run.endpoint}))


def _row(name: str, ours: Cost, plain: Cost) -> Row:
    return Row(
        scenario="jobs",
        name=f"{name}, per CPU-second",
        figure=ours.per_cpu_second,
        unit="rows",
        limit=min(ENOUGH, OF_PLAIN * plain.per_cpu_second),
        limit_name=f"1.2 M or {OF_PLAIN:g} of plain Python's {plain.per_cpu_second:,.0f}",
        goal=at_least(1.0),
        details={
            "rows_per_second": ours.per_second,
            "cpu_seconds": ours.cpu_seconds,
            "node_cpu_seconds": ours.node_cpu_seconds,
            "plain_rows_per_cpu_second": plain.per_cpu_second,
        },
    )
