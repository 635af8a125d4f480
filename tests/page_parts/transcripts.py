"""A terminal as a page shows it: commands, and below each what it prints."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from page_parts.blocks import Block

_PROMPT = "$ "
INTERRUPT = "^C"
_SERVER = re.compile(
    r"(?:\w+=\S*\s+)*(?:\S*/)?streamhouse\s+(?:serve|flume\s+broker|agent(?!\s+(?:list|drain|forget)\b))(?!.*--help)"
)
_PORT = re.compile(r"--(?:kafka-)?port[ =](\d+)")
_DEFAULT_PORT = 9092
_PROBLEM = re.compile(r'"status": ?[45]\d\d\b')
"""In a problem document, which is how the HTTP port refuses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a block. `shown` is what the page has below it; nothing shown, nothing compared. `interrupted`:
    the page ends it by Ctrl-C."""

    place: str
    text: str
    shown: tuple[str, ...] = ()
    interrupted: bool = False

    @property
    def is_server(self) -> bool:
        """It runs until it is stopped, and says when it is ready."""
        return _SERVER.match(self.text) is not None

    @property
    def kafka_port(self) -> int:
        """Of a server."""
        given = _PORT.search(self.text)
        return int(given[1]) if given else _DEFAULT_PORT

    @property
    def is_to_fail(self) -> bool:
        """The page shows an error as the last that it prints, or the HTTP port's refusal."""
        is_refused = self.text.startswith("curl ") and _PROBLEM.search("\n".join(self.shown)) is not None
        return is_refused or (bool(self.shown) and self.shown[-1].startswith("error: "))


def commands_of(block: Block) -> list[Command]:
    """Of a `console` block, where commands begin with `$ `, or of a script in `bash`, where all are commands."""
    lines = list(enumerate(block.text.splitlines(), start=block.line))
    return _of_console(block.page, lines) if block.language == "console" else _of_script(block.page, lines)


def _of_console(page: str, lines: list[tuple[int, str]]) -> list[Command]:
    found: list[Command] = []
    at = 0
    while at < len(lines):
        number, line = lines[at]
        assert line.startswith(_PROMPT), f"{page}:{number}: a console block begins with a command, behind '{_PROMPT}'"
        text, at = _whole(lines, at, line.removeprefix(_PROMPT))
        shown = []
        while at < len(lines) and not lines[at][1].startswith(_PROMPT):
            shown.append(lines[at][1].rstrip())
            at += 1
        interrupted = bool(shown) and shown[-1] == INTERRUPT
        if interrupted:
            shown.pop()
            assert shown, f"{page}:{number}: before {INTERRUPT} the page must show what is waited for"
        while shown and not shown[-1]:
            shown.pop()
        found.append(Command(place=f"{page}:{number}", text=text, shown=tuple(shown), interrupted=interrupted))
    return found


def _of_script(page: str, lines: list[tuple[int, str]]) -> list[Command]:
    found = []
    at = 0
    while at < len(lines):
        number, line = lines[at]
        if not line.strip() or line.lstrip().startswith("#"):
            at += 1
            continue
        text, at = _whole(lines, at, line)
        found.append(Command(place=f"{page}:{number}", text=text))
    return found


def _whole(lines: list[tuple[int, str]], at: int, text: str) -> tuple[str, int]:
    """The command that begins there, with the lines that the shell takes as its continuation, and the line behind."""
    at += 1
    while at < len(lines) and (text.endswith("\\") or not _is_complete(text)):
        text += "\n" + lines[at][1]
        at += 1
    return text, at


def _is_complete(text: str) -> bool:
    if "\n" not in text and not re.search(r"['\"`({]|<<|\b(?:do|then)\b", text):
        return True
    checked = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    return checked.returncode == 0 and "here-document" not in checked.stderr
