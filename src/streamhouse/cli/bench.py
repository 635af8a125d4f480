"""`streamhouse bench`: how fast a running broker takes records and gives them back, seen from our own client."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from streamhouse.cli.console import print_json, print_line, print_note, print_table
from streamhouse.cli.options import as_size_bytes, as_topic_name, bootstrap_option, json_option, run_async

if TYPE_CHECKING:
    from streamhouse.cli.bench_run import BenchPlan, BenchResult


@click.command(short_help="Measure a running broker.")
@click.option("--records", type=click.IntRange(min=1), default=200_000, show_default=True, help="Records to write.")
@click.option("--size", callback=as_size_bytes, default="100", show_default=True, help="Bytes of a record's value.")
@click.option("--partitions", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--acks", type=click.Choice(("all", "1", "0")), default="all", show_default=True)
@click.option(
    "--compression", type=click.Choice(("none", "gzip", "snappy", "lz4", "zstd")), default="none", show_default=True
)
@click.option("--probes", type=click.IntRange(min=1), default=500, show_default=True, help="Records timed one by one.")
@click.option(
    "--topic", callback=as_topic_name, help="Use this topic and leave it there; by default one is made and deleted."
)
@json_option
@bootstrap_option
def bench(
    records: int,
    size: int,
    partitions: int,
    acks: str,
    compression: str,
    probes: int,
    topic: str | None,
    as_json: bool,
    bootstrap: str,
) -> None:
    """Write records in batches, write some one by one to time their acknowledgement, and read everything back.

    The client is Python on one core, and is most often what limits the rates; `make bench` has the careful figures.

    \b
    Examples:
      streamhouse bench
      streamhouse bench --records 1000000 --size 1KiB --partitions 8 --compression lz4
      streamhouse bench --acks 1 --json
    """
    if size < 1:
        raise click.UsageError("--size: a record's value has one byte or more")
    from streamhouse.cli.bench_run import BenchPlan, run_bench
    from streamhouse.client.partition_sender import Acks
    from streamhouse.format.compression import Codec

    plan = BenchPlan(
        record_count=records,
        value_bytes=size,
        partition_count=partitions,
        acks=Acks.ALL if acks == "all" else Acks(int(acks)),
        codec=Codec[compression.upper()],
        probe_count=0 if acks == "0" else probes,
        topic=topic,
    )
    result = run_async(run_bench(bootstrap, plan))
    if as_json:
        print_json({"plan": _plan_as_json(plan), "result": asdict(result)})
    else:
        _print_result(plan, result)


def _print_result(plan: BenchPlan, result: BenchResult) -> None:
    acks = "all" if plan.acks == -1 else str(int(plan.acks))
    print_note(
        f"{plan.record_count:,} records of {plan.value_bytes:,} bytes, {plan.partition_count} partitions, "
        f"acks {acks}, compression {plan.codec.name.lower()}"
    )
    rows: list[tuple[str, str, str, str]] = [
        (phase.name, f"{phase.records_per_second:,.0f}", f"{phase.megabytes_per_second:,.1f}", f"{phase.seconds:.2f}")
        for phase in result.phases
    ]
    print_table(("phase", "records/s", "MB/s", "seconds"), rows)
    if result.latencies is not None:
        latencies = result.latencies
        shown = (latencies.p50, latencies.p95, latencies.p99, latencies.max)
        print_line("")
        print_table(
            ("acknowledged after (ms)", "p50", "p95", "p99", "max"),
            [("one record at a time", *(f"{value:.2f}" for value in shown))],
        )


def _plan_as_json(plan: BenchPlan) -> dict[str, object]:
    return {**asdict(plan), "acks": int(plan.acks), "codec": plan.codec.name.lower()}
