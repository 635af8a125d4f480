"""`python -m bench.spark`: runs the benchmarks of Spark, prints the table and writes the JSON.

Nothing here fails because of a time: a benchmark informs. It ends with an error only when something broke.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
from rich.console import Console

from bench import machine, report
from bench.native import NativeFailed
from bench.rows import Row
from bench.servers import ServerFailed
from bench.spark import floor, maintenance, sink, source
from bench.spark.plan import FULL, QUICK, Plan
from bench.spark.run import SparkRun, shortened, spark_run
from streamhouse.model.errors import StreamHouseError

Scenario = Callable[[SparkRun], Iterator[Row]]
SCENARIOS: dict[str, Scenario] = {
    "source": source.rows,
    "sink": sink.rows,
    "jobs": maintenance.rows,
    "floor": floor.rows,
}
OUT = Path(__file__).parents[1] / "out"
PLAIN_WIDTH = 150
"""Of the table where there is no terminal to ask."""


def measured(run: SparkRun, names: list[str]) -> list[Row]:
    """The rows of all scenarios; one that breaks leaves a row that says how, and the others go on."""
    from pyspark.errors import PySparkException

    rows: list[Row] = []
    for name in names:
        try:
            rows.extend(SCENARIOS[name](run))
        except (NativeFailed, ServerFailed, PySparkException, StreamHouseError) as broken:
            reason = shortened(broken)
            run.say(f"{name} broke: {reason}")
            rows.append(Row(scenario=name, name="broke", figure=None, unit="", note=reason))
    return rows


def sized(plan: Plan, scale: float, repeats: int | None) -> Plan:
    """The plan with so many times its records."""

    def scaled(count: int) -> int:
        return max(1_000, int(count * scale))

    return replace(
        plan,
        topics=tuple(replace(topic, records=scaled(topic.records)) for topic in plan.topics),
        maintained=replace(plan.maintained, records=scaled(plan.maintained.records)),
        repeats=repeats or plan.repeats,
    )


@click.command()
@click.option("--only", default="", help=f"Scenarios to run, separated by commas: {', '.join(SCENARIOS)}.")
@click.option("--quick", is_flag=True, help="Little data, once: shows that everything works, not how fast it is.")
@click.option("--scale", default=1.0, show_default=True, help="So many times the records.")
@click.option("--repeats", type=click.IntRange(min=1), help="How often each thing is measured.")
@click.option("--out", default=str(OUT), help="Where programs, jars, data and results go.")
def main(only: str, quick: bool, scale: float, repeats: int | None, out: str) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    names = [name.strip() for name in only.split(",") if name.strip()] or list(SCENARIOS)
    for name in names:
        if name not in SCENARIOS:
            raise click.BadParameter(
                f"{name!r} is not a scenario; there are {', '.join(SCENARIOS)}", param_hint="--only"
            )
    plan = sized(QUICK if quick else FULL, scale, repeats)
    started = time.monotonic()
    load_before = os.getloadavg()[0]
    with spark_run(plan, Path(out).absolute(), console) as run:
        rows = measured(run, names)
    report.print_table(console, rows)
    results = Path(out) / "spark-results.json"
    facts = {**machine.facts(), "load_average_before": f"{load_before:.1f}"}
    report.write_json(results, rows, facts, "quick" if quick else "full")
    took = time.monotonic() - started
    console.print(
        f"{len(rows)} rows in {took:.0f} s, written to {results}; the load average before it: {load_before:.1f}"
    )
    if any(row.name == "broke" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
