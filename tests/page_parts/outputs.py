"""Whether a command printed what the page shows.

What differs from run to run need not be marked where it speaks for itself: a time stands for any time, an id for one
id, the same wherever the page has it, also in commands below. For the rest there is `…`: inside a line for any text, on
a line of its own for any lines. How wide a table is drawn does not count."""

from __future__ import annotations

import re
from collections.abc import Iterable

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_MILLISECONDS = r"\b1\d{12}\b"
_ID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b"
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_ANY = "…"
_SPECIAL = re.compile(f"(?P<any>{_ANY})|(?P<time>{_TIME})|(?P<ms>{_MILLISECONDS})|(?P<id>{_ID})|(?P<number>{_NUMBER})")


class Bindings:
    """The ids of a page, and what they are in this run."""

    def __init__(self) -> None:
        self._actual: dict[str, str] = {}

    def in_command(self, text: str) -> str:
        for shown, actual in self._actual.items():
            text = text.replace(shown, actual)
        return text

    def matches(self, shown: Iterable[str], printed: str, *, numbers_vary: bool = False) -> bool:
        """Also takes note of the ids, if so."""
        names: dict[str, str] = {}
        pattern = "".join(self._line(line, names, numbers_vary) for line in shown)
        found = re.fullmatch(pattern, "".join(f"{_plain(line)}\n" for line in printed.rstrip().splitlines()))
        if found is None:
            return False
        self._actual |= {shown_id: found[name] for shown_id, name in names.items()}
        return True

    def _line(self, line: str, names: dict[str, str], numbers_vary: bool) -> str:
        if line.strip() == _ANY:
            return r"(?:[^\n]*\n)*?"
        pattern = ""
        end = 0
        line = _plain(line)
        for special in _SPECIAL.finditer(line):
            pattern += re.escape(line[end : special.start()]) + self._special(special, names, numbers_vary)
            end = special.end()
        return pattern + re.escape(line[end:]) + "\n"

    def _special(self, special: re.Match[str], names: dict[str, str], numbers_vary: bool) -> str:
        text = special[0]
        match special.lastgroup:
            case "any":
                return r"[^\n]*?"
            case "time":
                return _TIME
            case "ms":
                return _MILLISECONDS
            case "number":
                return _NUMBER if numbers_vary else re.escape(text)
        if text in self._actual:
            return re.escape(self._actual[text])
        if text in names:
            return f"(?P={names[text]})"
        names[text] = f"id{len(names)}"
        return f"(?P<{names[text]}>{_ID})"


def printed_by(program: str) -> list[str]:
    """What a Python program says that it prints: `print(total)  # -> 12.5`."""
    return re.findall(r"^\s*print\(.*\)  # -> (.*)$", program, re.MULTILINE)


def prints_in_order(shown: Iterable[str], printed: str) -> bool:
    """Whether these lines are among those that were printed, in this order."""
    lines = iter(printed.splitlines())
    return all(any(Bindings().matches([line], candidate) for candidate in lines) for line in shown)


def _plain(line: str) -> str:
    return re.sub(r"\s+", " ", re.sub("─+", "─", line)).strip()
