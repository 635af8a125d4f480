"""Progress that people see: bars on a terminal, a line at each quarter where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_QUARTERS = 4


class Meter(Protocol):
    def reached(self, done: int) -> None:
        """So many of the steps are done."""


class _Bar:
    def __init__(self, progress: Progress, task: TaskID) -> None:
        self._progress = progress
        self._task = task

    def reached(self, done: int) -> None:
        self._progress.update(self._task, completed=done)


class _Lines:
    def __init__(self, console: Console, title: str, total: int) -> None:
        self._console = console
        self._title = title
        self._total = total
        self._quarters = 0

    def reached(self, done: int) -> None:
        quarters = done * _QUARTERS // self._total
        if quarters > self._quarters:
            self._quarters = quarters
            self._console.print(f"{self._title}: {done:,} of {self._total:,}")


@contextmanager
def meter(console: Console, title: str, total: int) -> Iterator[Meter]:
    if not console.is_terminal:
        yield _Lines(console, title, total)
        return
    columns = (TextColumn("{task.description:<34}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield _Bar(progress, progress.add_task(title, total=total))
