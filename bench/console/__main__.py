"""`python -m bench.console`: measures the console in a browser, prints the table and writes the JSON.

Nothing here fails because of a time: a benchmark informs. It ends with an error only when something broke.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from playwright.sync_api import Browser, Error
from rich.console import Console

from bench import machine, report
from bench.console import first_paint, live_tail
from bench.console.browser import chromium
from bench.console.plan import FULL, QUICK, Plan
from bench.rows import Row
from bench.servers import ServerFailed

Scenario = Callable[[Browser, Plan, Path], Iterator[Row]]
SCENARIOS: dict[str, Scenario] = {"first-paint": first_paint.rows, "live-tail": live_tail.rows}
OUT = Path(__file__).parents[1] / "out"
PLAIN_WIDTH = 150
"""Of the table where there is no terminal to ask."""


def measured(plan: Plan, names: list[str], directory: Path) -> list[Row]:
    """The rows of all scenarios; one that breaks leaves a row that says how, and the others go on."""
    rows: list[Row] = []
    with chromium() as browser:
        for name in names:
            try:
                rows.extend(SCENARIOS[name](browser, plan, directory))
            except (ServerFailed, Error) as broken:
                rows.append(Row(scenario=name, name="broke", figure=None, unit="", note=str(broken)))
    return rows


@click.command()
@click.option("--only", default="", help=f"Scenarios to run, separated by commas: {', '.join(SCENARIOS)}.")
@click.option("--quick", is_flag=True, help="Little data, once: shows that everything works, not how fast it is.")
@click.option("--out", default=str(OUT), help="Where data and results go.")
def main(only: str, quick: bool, out: str) -> None:
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    names = [name.strip() for name in only.split(",") if name.strip()] or list(SCENARIOS)
    for name in names:
        if name not in SCENARIOS:
            raise click.BadParameter(
                f"{name!r} is not a scenario; there are {', '.join(SCENARIOS)}", param_hint="--only"
            )
    started = time.monotonic()
    load_before = os.getloadavg()[0]
    Path(out).mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out) as directory:
        rows = measured(QUICK if quick else FULL, names, Path(directory).absolute())
    report.print_table(console, rows)
    results = Path(out) / "console-results.json"
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
