"""`python -m bench`: runs the benchmarks, prints the table and writes the JSON.

Nothing here fails because of a time: a benchmark informs. It ends with an error only when something broke.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from rich.console import Console

from bench import machine, report
from bench.native import NativeFailed
from bench.rows import Row
from bench.run import FULL, QUICK, Run
from bench.scenarios import (
    consume,
    crowd,
    doors,
    failover,
    groups,
    growth,
    idle_cluster,
    kafka,
    latency,
    produce,
    requests,
    scale,
    testing,
)
from bench.servers import ServerFailed

Scenario = Callable[[Run], Iterator[Row]]
SCENARIOS: dict[str, tuple[str, tuple[Scenario, ...]]] = {
    "a": ("produce", (produce.rows,)),
    "b": ("requests", (requests.rows,)),
    "c": ("latency", (latency.rows,)),
    "d": ("consume", (consume.rows, crowd.rows)),
    "e": ("growth", (growth.rows,)),
    "f": ("kafka", (kafka.rows,)),
    "g": ("testing", (testing.rows,)),
    "h": ("groups", (groups.rows,)),
    "i": ("failover", (failover.rows,)),
    "j": ("scale", (scale.rows, idle_cluster.rows)),
    "k": ("doors", (doors.rows,)),
}
OUT = Path(__file__).parent / "out"
PLAIN_WIDTH = 150
"""Of the table where there is no terminal to ask."""


def chosen(only: str) -> list[str]:
    """The letters of the scenarios named by letter or by name; all of them for an empty text."""
    letters = {name: letter for letter, (name, _) in SCENARIOS.items()} | {letter: letter for letter in SCENARIOS}
    wanted = [part.strip() for part in only.split(",") if part.strip()]
    for part in wanted:
        if part not in letters:
            known = ", ".join(f"{letter} ({name})" for letter, (name, _) in SCENARIOS.items())
            raise click.BadParameter(f"{part!r} is not a scenario; there are {known}", param_hint="--only")
    return sorted({letters[part] for part in wanted} or set(SCENARIOS))


def measured(run: Run, letters: list[str]) -> list[Row]:
    """The rows of all scenarios; one that breaks leaves a row that says how, and the others go on."""
    rows: list[Row] = []
    for letter in letters:
        name, parts = SCENARIOS[letter]
        for scenario in parts:
            try:
                rows.extend(scenario(run))
            except (NativeFailed, ServerFailed) as broken:
                run.say(f"{name} broke: {broken}")
                rows.append(Row(scenario=name, name="broke", figure=None, unit="", note=str(broken)))
    return rows


@click.command()
@click.option("--only", default="", help="Scenarios to run, by letter or name: a,b or produce,requests.")
@click.option("--quick", is_flag=True, help="A few seconds each: shows that everything works, not how fast it is.")
@click.option("--out", default=str(OUT), help="Where programs, data and results go.")
def main(only: str, quick: bool, out: str) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    letters = chosen(only)
    run = Run(plan=QUICK if quick else FULL, out=Path(out), console=console)
    started = time.monotonic()
    run.prepare()
    try:
        rows = measured(run, letters)
    finally:
        run.clean()
    report.print_table(console, rows)
    results = run.out / "results.json"
    report.write_json(results, rows, machine.facts(), "quick" if quick else "full")
    run.say(f"{len(rows)} rows in {time.monotonic() - started:.0f} s, written to {results}")
    if any(row.name == "broke" for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
