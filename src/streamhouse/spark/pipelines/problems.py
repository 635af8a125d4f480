"""What is wrong with a pipeline's file, each problem with its line, all of them told at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from streamhouse.model.errors import InvalidConfig


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    line: int
    message: str


class InvalidPipeline(InvalidConfig):
    """A file that cannot run as it is; `problems` are in the order of its lines."""

    def __init__(self, file: str, problems: Iterable[Problem]) -> None:
        self.file = file
        self.problems = tuple(sorted(set(problems)))
        super().__init__("; ".join(self.lines()))

    def lines(self) -> list[str]:
        """As compilers say it, so that editors find the place."""
        return [f"{self.file}:{problem.line}: {problem.message}" for problem in self.problems]


class Problems:
    """Collects them, so that one look at the file mends all."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._found: list[Problem] = []

    @property
    def is_empty(self) -> bool:
        return not self._found

    def lines(self) -> list[str]:
        """Of those that were found so far."""
        return InvalidPipeline(self.file, self._found).lines()

    def add(self, line: int, message: str) -> None:
        self._found.append(Problem(line, message))

    def raise_any(self) -> None:
        if self._found:
            raise InvalidPipeline(self.file, self._found)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message: the likely name, or all that there are."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(names)}" if names else ""
