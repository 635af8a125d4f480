"""The regular expressions that a consumer may subscribe with: the part of RE2's syntax that says much about topics.

Everything here is over the alphabet of topic names, which makes every character class a small set. What RE2 refuses
(backreferences, lookaround, repeated repetitions) is refused here too; so are word boundaries."""

from __future__ import annotations

import string
from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn, TypeAlias

from streamhouse.model.errors import InvalidInput

MAX_PATTERN_LENGTH = 2_048
MAX_REPETITIONS = 1_000  # RE2's limit for one counted repetition
MAX_NESTING = 50
TOPIC_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")

_DIGITS = frozenset(string.digits)
_WORD = frozenset(string.ascii_letters + string.digits + "_")
_CLASSES = {
    "d": _DIGITS,
    "D": TOPIC_CHARACTERS - _DIGITS,
    "w": _WORD,
    "W": TOPIC_CHARACTERS - _WORD,
    "s": frozenset[str](),
    "S": TOPIC_CHARACTERS,
}
_POSIX_CLASSES = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "digit": _DIGITS,
    "lower": frozenset(string.ascii_lowercase),
    "punct": frozenset("._-"),
    "upper": frozenset(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": frozenset(string.hexdigits),
}


class Anchor(Enum):
    START = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of a set; an empty set is one that no topic name has."""

    accepted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: Node
    low: int
    high: int | None


Node: TypeAlias = Anchor | Characters | Sequence | Choice | Repeat


def parse_pattern(text: str) -> Node:
    """The pattern's structure; raises InvalidInput if it has none."""
    if len(text) > MAX_PATTERN_LENGTH:
        raise InvalidInput(
            f"a topic pattern of {len(text)} characters is too long", hint=f"use at most {MAX_PATTERN_LENGTH}"
        )
    parser = _Parser(text)
    node = parser.choice()
    if not parser.at_end:
        parser.refuse("an unmatched ')'")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._nesting = 0
        self._ignore_case = False

    @property
    def at_end(self) -> bool:
        return self._position == len(self._text)

    def refuse(self, problem: str) -> NoReturn:
        raise InvalidInput(
            f"the topic pattern {self._text!r} has {problem} at {self._position}", hint="use RE2's syntax"
        )

    def choice(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while not self.at_end and self._peek() not in "|)":
            parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, part: Node) -> Node:
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")  # a lazy repetition matches the same names
        if not self.at_end and (self._peek() in "*+?" or self._bounds() is not None):
            self.refuse("a repetition of a repetition")
        return Repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        close = self._text.find("}", self._position)
        if close < 0 or not self._text.startswith("{", self._position):
            return None
        low, comma, high = self._text[self._position + 1 : close].partition(",")
        if not _is_count(low) or (high and not _is_count(high)):
            return None  # RE2 takes such a brace as itself
        bounds = int(low), (int(high) if high else None if comma else int(low))
        if max(bounds[0], bounds[1] or 0) > MAX_REPETITIONS or (bounds[1] is not None and bounds[1] < bounds[0]):
            self.refuse("a repetition out of range")
        self._position = close + 1
        return bounds

    def _atom(self) -> Node:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case ".":
                return Characters(TOPIC_CHARACTERS)
            case "^":
                return Anchor.START
            case "$":
                return Anchor.END
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                self.refuse("nothing to repeat")
            case _:
                return self._literal(character)

    def _group(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self.refuse(f"groups nested deeper than {MAX_NESTING}")
        outer = self._ignore_case
        if self._take("?"):
            if self._take("i)"):  # holds to the end of the enclosing group
                self._nesting -= 1
                self._ignore_case = True
                return Sequence(())
            self._group_prefix()
        node = self.choice()
        if not self._take(")"):
            self.refuse("a '(' without its ')'")
        self._nesting -= 1
        self._ignore_case = outer
        return node

    def _group_prefix(self) -> None:
        if self._take(":"):
            return
        if self._take("i:"):
            self._ignore_case = True
            return
        if self._take("P<") or self._take("<"):
            close = self._text.find(">", self._position)
            if close > 0 and self._text[self._position : close].isidentifier():
                self._position = close + 1
                return
        self.refuse("a group of an unsupported kind")

    def _escape(self) -> Node:
        if self.at_end:
            self.refuse("a trailing backslash")
        character = self._next()
        if character == "A":
            return Anchor.START
        if character == "z":
            return Anchor.END
        return Characters(self._escaped_set(character))

    def _escaped_set(self, character: str) -> frozenset[str]:
        if character in _CLASSES:
            return _CLASSES[character]
        if character in "afnrtv":
            return frozenset()  # control characters: in no topic's name
        if character.isalnum():
            self.refuse(f"the unsupported escape \\{character}")
        return self._accepted(character)

    def _set(self) -> Node:
        negated = self._take("^")
        accepted: set[str] = set()
        first = True
        while first or not self._take("]"):
            if self.at_end:
                self.refuse("a '[' without its ']'")
            first = False
            accepted |= self._set_item()
        return Characters(TOPIC_CHARACTERS - accepted if negated else frozenset(accepted))

    def _set_item(self) -> frozenset[str]:
        if self._take("[:"):
            close = self._text.find(":]", self._position)
            name = self._text[self._position : max(close, self._position)]
            if name not in _POSIX_CLASSES:
                self.refuse("an unknown character class")
            self._position = close + 2
            return self._folded(_POSIX_CLASSES[name])
        low = self._set_character()
        if isinstance(low, frozenset):
            return low
        rest = self._text[self._position : self._position + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return self._accepted(low)
        self._position += 1
        high = self._set_character()
        if isinstance(high, frozenset) or high < low:
            self.refuse("a bad range")
        return self._folded(frozenset(one for one in TOPIC_CHARACTERS if low <= one <= high))

    def _set_character(self) -> str | frozenset[str]:
        """The next character inside brackets, or the whole class that an escape there stands for."""
        character = self._next()
        if character != "\\":
            return character
        if self.at_end:
            self.refuse("a trailing backslash")
        character = self._next()
        return self._escaped_set(character) if character.isalnum() else character

    def _literal(self, character: str) -> Characters:
        return Characters(self._accepted(character))

    def _accepted(self, character: str) -> frozenset[str]:
        return self._folded(frozenset(character) & TOPIC_CHARACTERS)

    def _folded(self, characters: frozenset[str]) -> frozenset[str]:
        return characters | {one.swapcase() for one in characters} if self._ignore_case else characters

    def _peek(self) -> str:
        return self._text[self._position]

    def _next(self) -> str:
        self._position += 1
        return self._text[self._position - 1]

    def _take(self, expected: str) -> bool:
        if not self._text.startswith(expected, self._position):
            return False
        self._position += len(expected)
        return True


def _is_count(text: str) -> bool:
    return 0 < len(text) <= 4 and text.isascii() and text.isdigit()
