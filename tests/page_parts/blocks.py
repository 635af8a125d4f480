"""The fenced blocks of a page, in its order, with the marks that stand above them in the page's source."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\S*)\s*$")
_MARK = re.compile(
    r"<!-- (?P<name>not run|run first|numbers vary|keeps running|goes on|finds rows)(?:: (?P<text>.*?))?\s*-->",
    re.DOTALL,
)
_COMMENTS_ABOVE = re.compile(r"(?:^ *<!--(?:(?!-->).)*-->[ ]*\n+)+\Z", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`line` is that of its first line of text. The marks:

    - `not_run`: why it cannot be run by the tests;
    - `run_first`: commands that a reader need not see, run before it;
    - `numbers_vary`: of its output only the words are compared;
    - `keeps_running`: what it starts goes on until the page ends, and not only until the block does;
    - `goes_on`: a program that needs the names of the one before it;
    - `finds_rows`: each of its queries finds something, and not nothing."""

    page: str
    line: int
    language: str
    text: str
    not_run: str | None = None
    run_first: str | None = None
    numbers_vary: bool = False
    keeps_running: bool = False
    goes_on: bool = False
    finds_rows: bool = False

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: str, source: str) -> list[Block]:
    """In order. A fence that is not closed is an error of the page."""
    lines = source.splitlines(keepends=True)
    found = []
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        if fence is None:
            number += 1
            continue
        end = next((at for at in range(number + 1, len(lines)) if lines[at].strip() == "```"), None)
        assert end is not None, f"{page}:{number + 1}: this block has no end"
        indent = len(fence["indent"])
        text = "".join(line[indent:] if line[:indent].isspace() else line for line in lines[number + 1 : end])
        marks = _marks_above("".join(lines[:number]), f"{page}:{number + 1}")
        found.append(
            Block(
                page=page,
                line=number + 2,
                language=fence["language"],
                text=text,
                not_run=marks.get("not run"),
                run_first=marks.get("run first"),
                numbers_vary="numbers vary" in marks,
                keeps_running="keeps running" in marks,
                goes_on="goes on" in marks,
                finds_rows="finds rows" in marks,
            )
        )
        number = end + 1
    return found


def read_blocks(page: str) -> list[Block]:
    return blocks_of(page, (REPOSITORY / page).read_text("utf-8"))


def _marks_above(source: str, place: str) -> dict[str, str]:
    above = _COMMENTS_ABOVE.search(source)
    if above is None:
        return {}
    marks = {mark["name"]: (mark["text"] or "").strip() for mark in _MARK.finditer(above[0])}
    assert all(marks[name] for name in ("not run", "run first") if name in marks), f"{place}: a mark that says nothing"
    return marks
