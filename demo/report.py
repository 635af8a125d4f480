"""The table at the end: what happened, in numbers of this run on this machine."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table

from demo.pipeline import PipelineOutcome
from demo.scenario import PACE_PER_SECOND, PARTITIONS, TOPIC, Outcome


def make_table(outcome: Outcome) -> Table:
    table = Table(title="What happened", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("what")
    table.add_column("result")
    for what, result in _rows(outcome):
        table.add_row(what, result)
    return table


def _rows(outcome: Outcome) -> list[tuple[str, str]]:
    stopped, stored = outcome.stopped, outcome.stopped.segments_after
    events, value_bytes = outcome.events, outcome.value_bytes
    fast_bytes = value_bytes * outcome.fast_events / events
    return [
        ("events", f"{events:,} orders, {_megabytes(value_bytes)} of JSON, topic {TOPIC!r}, {PARTITIONS} partitions"),
        ("node ready after", _seconds(outcome.start_seconds)),
        ("produce, acks=all, idempotent", _rate(outcome.fast_events, fast_bytes, outcome.fast_seconds)),
        (f"acknowledged at {PACE_PER_SECOND:,}/s", _latency(outcome.ack_seconds)),
        (f"end to end at {PACE_PER_SECOND:,}/s", _latency(outcome.end_to_end_seconds)),
        ("consume from memory", _rate(events, value_bytes, outcome.read_seconds)),
        ("consume from segments, restarted", _rate(events, value_bytes, outcome.reread_seconds)),
        ("verified", f"{events:,} events came back exactly once and equal, both times"),
        *_pipeline_rows(outcome.pipeline),
        (
            "segments written",
            f"{stored.count} ({stopped.segments_before.count} while running, "
            f"{stored.count - stopped.segments_before.count} by the drain)",
        ),
        (
            "segment sizes",
            f"{_megabytes(stored.stored_bytes)} stored for {_megabytes(stored.raw_bytes)} of batches "
            f"({stored.stored_bytes / stored.raw_bytes:.0%}), "
            f"{stored.stored_bytes / stored.count / 1024:,.0f} KiB each",
        ),
        ("WAL", f"{_megabytes(stopped.wal_bytes)} preallocated, files: {stopped.wal_files}"),
        ("node memory, processor time", f"{_megabytes(stopped.memory_bytes)}, {_seconds(stopped.cpu_seconds)}"),
        ("drained", f"{_seconds(stopped.seconds)}, exit code 0, {stored.records:,} records in the object store"),
    ]


def make_revenue_table(outcome: PipelineOutcome) -> Table:
    table = Table(title="Revenue, as the pipeline has it", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("region", "currency"):
        table.add_column(heading)
    for heading in ("orders", "revenue", "minutes", "per minute"):
        table.add_column(heading, justify="right")
    for (region, currency), sales in outcome.regions.items():
        revenue, minutes = sales.cents / 100, sales.minutes
        table.add_row(
            region, currency, f"{sales.orders:,}", f"{revenue:,.2f}", f"{minutes:,}", f"{revenue / minutes:,.2f}"
        )
    return table


def _pipeline_rows(outcome: PipelineOutcome | str) -> list[tuple[str, str]]:
    if isinstance(outcome, str):
        return [("pipeline on Spark", f"left out: {outcome}")]
    sums = f"{outcome.orders:,} orders to {outcome.rows:,} sums per minute and region"
    return [
        ("pipeline on Spark", f"{sums} in {_seconds(outcome.seconds)}, Spark's start included"),
        ("its result", f"equal to what the orders say, dead letters: {outcome.dead_letters:,}"),
    ]


def _rate(records: int, size_bytes: float, seconds: float) -> str:
    rates = f"{records / seconds:,.0f} records/s, {size_bytes / seconds / 1e6:,.1f} MB/s"
    return f"{records:,} in {_seconds(seconds)}: {rates}"


def _latency(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    half, most = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return f"p50 {half * 1000:.2f} ms, p99 {most * 1000:.2f} ms over {len(ordered):,} events"


def _megabytes(size_bytes: float) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
