"""What a running pipeline shows: a table that changes on a terminal, a line a batch in a log, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from streamhouse.cli.console import announce, print_note
from streamhouse.cli.escape import escape_text
from streamhouse.cli.pipeline_report import QUERY_HEADINGS, query_row
from streamhouse.spark.pipelines.progress import Progress
from streamhouse.spark.pipelines.registry import RUNNING, RunRecord

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table


class View(Protocol):
    def note(self, text: str) -> None:
        """What it is doing."""

    def batch(self, pipeline: str, batch: Progress) -> None:
        """A micro-batch is done."""

    def show(self, record: RunRecord) -> None:
        """Where all of it stands."""

    def rows(self, sink: str, batch_id: int, rows: list[dict[str, object]], count: int) -> None:
        """Of a console sink: the first rows of a batch, and how many there are. Called on other threads."""


@contextmanager
def open_view(*, as_json: bool) -> Iterator[View]:
    if as_json:
        yield _JsonView()
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        # Rows that go to the same terminal are put above the table; those that go elsewhere must get there as they are.
        is_shared = sys.stdout.isatty()
        with Live(console=console, auto_refresh=False, transient=False, redirect_stdout=is_shared) as live:
            yield LiveView(live)
    else:
        yield _LogView()


class _JsonView:
    def note(self, text: str) -> None:
        pass

    def batch(self, pipeline: str, batch: Progress) -> None:
        announce(json.dumps({"pipeline": pipeline, **batch.as_json()}))

    def show(self, record: RunRecord) -> None:
        pass

    def rows(self, sink: str, batch_id: int, rows: list[dict[str, object]], count: int) -> None:
        announce(json.dumps({"sink": sink, "batch_id": batch_id, "rows": rows, "row_count": count}, default=str))


class _LogView:
    def note(self, text: str) -> None:
        print_note(text)

    def batch(self, pipeline: str, batch: Progress) -> None:
        if not batch.input_rows and not batch.output_rows:
            return
        lag = f", lag {sum(batch.lag.values())}" if batch.lag else ""
        print_note(
            f"{batch.query}: batch {batch.batch_id}, {batch.input_rows} rows in, {batch.output_rows} out, "
            f"{batch.batch_ms} ms{lag}"
        )

    def show(self, record: RunRecord) -> None:
        pass

    def rows(self, sink: str, batch_id: int, rows: list[dict[str, object]], count: int) -> None:
        _print_rows(sink, batch_id, rows, count)


class LiveView:
    def __init__(self, live: Live) -> None:
        self._live = live

    def note(self, text: str) -> None:
        self._live.update(escape_text(text), refresh=True)

    def batch(self, pipeline: str, batch: Progress) -> None:
        pass

    def show(self, record: RunRecord) -> None:
        self._live.update(_table(record), refresh=True)

    def rows(self, sink: str, batch_id: int, rows: list[dict[str, object]], count: int) -> None:
        _print_rows(sink, batch_id, rows, count)


def _table(record: RunRecord) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    letters = f"{record.dead_letters:,} dead letters"
    table = Table(
        box=box.SIMPLE_HEAD,
        title=Text(
            f"{record.name} {record.state}, {letters}" + ("; Ctrl-C stops it" if record.state == RUNNING else "")
        ),
        title_justify="left",
    )
    for index, heading in enumerate(QUERY_HEADINGS):
        table.add_column(heading, justify="left" if index < 2 or heading == "watermark" else "right")
    for query in record.queries:
        table.add_row(*(Text("-" if cell is None else escape_text(str(cell))) for cell in query_row(query)))
    return table


def _print_rows(sink: str, batch_id: int, rows: list[dict[str, object]], count: int) -> None:
    """Data goes to stdout, a row a line; people see which sink it is from on stderr."""
    print_note(f"{sink}: batch {batch_id}, {count} rows" + ("" if len(rows) == count else f", the first {len(rows)}"))
    for row in rows:
        announce(json.dumps(row, default=str))
