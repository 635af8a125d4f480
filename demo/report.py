"""The table at the end: what happened, in numbers of this run on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from rich import box
from rich.table import Table

from demo.ending import Drained
from demo.pipeline_outcome import PipelineOutcome
from demo.scenario import FLOW_PER_SECOND, PACE_PER_SECOND, PARTITIONS, TOPIC, Outcome

Row: TypeAlias = tuple[str, str]


def make_table(rows: Sequence[Row]) -> Table:
    table = Table(title="What happened", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column("what")
    table.add_column("result")
    for what, result in rows:
        table.add_row(what, result)
    return table


def shown_rows(outcome: Outcome) -> list[Row]:
    events, value_bytes = outcome.events, outcome.value_bytes
    fast_bytes = value_bytes * outcome.fast_events / events
    return [
        ("events", f"{events:,} orders, {_megabytes(value_bytes)} of JSON, topic {TOPIC!r}, {PARTITIONS} partitions"),
        ("cluster", f"agents: {outcome.agents}, ready after {_seconds(outcome.start_seconds)}"),
        ("produce, acks=all, idempotent", _rate(outcome.fast_events, fast_bytes, outcome.fast_seconds)),
        (f"acknowledged at {PACE_PER_SECOND:,}/s", _latency(outcome.ack_seconds)),
        (f"end to end at {PACE_PER_SECOND:,}/s", _latency(outcome.end_to_end_seconds)),
        *_failover_rows(outcome),
        ("nothing lost", f"{events:,} of {events:,} events came back, exactly once and equal"),
        ("consume from the start", _rate(events, value_bytes, outcome.read_seconds)),
        *_pipeline_rows(outcome.pipeline),
        (
            "agents' memory, processor time",
            f"at most {_megabytes(outcome.memory_bytes)} each, {_seconds(outcome.cpu_seconds)} together",
        ),
    ]


def _failover_rows(outcome: Outcome) -> list[Row]:
    failover = outcome.failover
    led = f"it led {failover.partitions_led} of {PARTITIONS} partitions"
    after = "which the others lead now" if outcome.agents > 1 else "and leads them again"
    flow = f"{failover.orders:,} orders at {FLOW_PER_SECOND}/s"
    return [
        (f"kill -9 {failover.agent}", f"{led}, {after}"),
        ("orders across the kill", f"{flow}, all acknowledged; the longest wait {_seconds(failover.longest_seconds)}"),
    ]


def drained_rows(drained: Drained) -> list[Row]:
    after, written = drained.after, drained.after.segments - drained.before.segments
    return [
        ("segments written", f"{after.segments} ({drained.before.segments} while running, {written} by the drain)"),
        (
            "segment sizes",
            f"{_megabytes(after.size_bytes)}, {after.size_bytes / after.segments / 1024:,.0f} KiB each",
        ),
        (
            "drained",
            f"{_seconds(drained.seconds)}, exit code 0 of {drained.agents}, {after.records:,} records in segments",
        ),
        ("cluster verify --deep", drained.verified),
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


def _pipeline_rows(outcome: PipelineOutcome | str) -> list[Row]:
    if isinstance(outcome, str):
        return [("pipeline on Spark", f"left out: {outcome}")]
    sums = f"{outcome.orders:,} orders to {outcome.rows:,} sums per minute and region"
    first, last = _seconds(outcome.first_seconds), _seconds(outcome.seconds)
    return [
        ("pipeline on Spark", f"{sums}; since Spark was started: first {first}, last {last}"),
        (
            "its results",
            f"topic and Delta table are equal to what the orders say, dead letters: {outcome.dead_letters:,}",
        ),
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
