"""What commands print: tables for people, JSON for programs, progress and errors on stderr; data is never markup."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from streamhouse.cli.escape import escape_text

if TYPE_CHECKING:
    from rich.console import Console

# Where nobody looks at the width, a row stays on its line: what reads it is `grep` or a file.
_UNWRAPPED_WIDTH = 10_000


class Progress(Protocol):
    def advance(self, steps: int) -> None: ...


def print_json(value: object) -> None:
    """One document, safe for a terminal because everything outside ASCII is escaped."""
    print(json.dumps(value, indent=2, ensure_ascii=True))


def print_line(text: str) -> None:
    print(escape_text(text))


def announce(line: str) -> None:
    """At once: whoever started us waits for this line, most often through a pipe."""
    print(line, flush=True)


def print_note(text: str) -> None:
    """For people, so not where the data goes."""
    print(escape_text(text), file=sys.stderr)


def print_error(text: str) -> None:
    print(f"error: {escape_text(text)}", file=sys.stderr)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """A column of numbers goes to the right, its numbers bare so that they can be pasted into the next command."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        title=Text(escape_text(title)) if title else None,
        title_justify="left",
    )
    for index, heading in enumerate(headings):
        numeric = bool(rows) and all(isinstance(row[index], int | None) for row in rows)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    _console().print(table)


def print_facts(facts: Sequence[tuple[str, object]]) -> None:
    """A few named values, one a line."""
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        print(f"{name.ljust(width)}  {_cell(value)}")


def count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


@contextmanager
def progress_bar(description: str, total: int | None, *, visible: bool = True) -> Iterator[Progress]:
    """A bar on stderr while the work lasts; silent where stderr is no terminal."""
    if not visible or not sys.stderr.isatty():
        yield _Silent()
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=_console(stderr=True), transient=True) as bar:
        yield _Bar(bar, bar.add_task(description, total=total))


class _Silent:
    def advance(self, steps: int) -> None:
        pass


class _Bar:
    def __init__(self, bar: object, task: object) -> None:
        self._bar = bar
        self._task = task

    def advance(self, steps: int) -> None:
        self._bar.advance(self._task, steps)  # type: ignore[attr-defined]


def _cell(value: object) -> str:
    return "-" if value is None else escape_text(str(value))


def _console(*, stderr: bool = False) -> Console:
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        file=stream, width=None if stream.isatty() else _UNWRAPPED_WIDTH, markup=False, highlight=False, emoji=False
    )
