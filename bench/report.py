"""The result for people (a table) and for programs (a JSON file)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.rows import Row

MARKS = {True: "[green]met[/green]", False: "[yellow]missed[/yellow]", None: ""}


def print_table(console: Console, rows: Sequence[Row]) -> None:
    table = Table(title="StreamHouse benchmarks", title_justify="left")
    table.add_column("scenario", style="cyan")
    table.add_column("what", no_wrap=True)
    table.add_column("figure", justify="right")
    table.add_column("limit in the same run", justify="right")
    table.add_column("ratio", justify="right")
    table.add_column("goal")
    table.add_column("")
    previous = ""
    for row in rows:
        if previous and row.scenario != previous:
            table.add_section()
        previous = row.scenario
        if row.figure is None:
            table.add_row(row.scenario, row.name, "—")
            continue
        table.add_row(
            row.scenario,
            row.name,
            f"{shown(row.figure)} {row.unit}",
            f"{shown(row.limit)} ({row.limit_name})" if row.limit is not None else "",
            f"{row.ratio:.2f}" if row.ratio is not None else "",
            str(row.goal or ""),
            MARKS[row.met],
        )
    console.print(table)
    for row in rows:
        if row.note:
            console.print(f"{row.scenario}, {row.name}: {row.note}", highlight=False, markup=False)


def shown(value: float) -> str:
    """Three figures are more than the noise allows, and large numbers need their separators."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def write_json(path: Path, rows: Sequence[Row], facts: dict[str, str | int], plan: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    result = {"machine": facts, "plan": plan, "rows": [_as_json(row) for row in rows]}
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


def _as_json(row: Row) -> dict[str, object]:
    plain: dict[str, object] = {**asdict(row), "ratio": row.ratio, "met": row.met}
    plain["goal"] = str(row.goal) if row.goal else None
    return plain
