"""The regular expressions that a consumer may subscribe with: RE2's syntax, as RE2/J reads it for Kafka.

Everything here is over the alphabet of topic names, which makes every character class a small set, and leaves flags
that are about lines or about which match is found without a meaning. What RE2 refuses (backreferences, lookaround,
repeated repetitions) is refused here too, with what is wrong and where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import NoReturn, TypeAlias

from streamhouse.core.groups.consumer_pattern_classes import (
    PERL_CLASSES,
    POSIX_CLASSES,
    TOPIC_CHARACTERS,
    UNICODE_CLASSES,
)
from streamhouse.model.errors import InvalidInput

MAX_PATTERN_LENGTH = 2_048
MAX_REPETITIONS = 1_000  # RE2's limit for one counted repetition
MAX_NESTING = 50

_COUNTS = re.compile(r"\{(0|[1-9]\d*)(,(0|[1-9]\d*)?)?\}", re.ASCII)
_FLAGS = re.compile(r"([imsU]*)(?:-([imsU]+))?([:)])")
_NAME = re.compile(r"P?<(\w+)>", re.ASCII)
_CODE = re.compile(r"[0-7]{2,3}|0|x[0-9A-Fa-f]{2}|x\{[0-9A-Fa-f]{1,8}\}")
_UNICODE_CLASS = re.compile(r"\{(\^?)([^}]*)\}|(.)", re.DOTALL)
_POSIX_CLASS = re.compile(r"\[:(\^?)([^:\]]*):\]")
_ABSENT = {"?=": "a lookahead", "?!": "a lookahead", "?<=": "a lookbehind", "?<!": "a lookbehind"}


class Anchor(Enum):
    """What holds between two characters."""

    START = auto()
    END = auto()
    WORD_BOUNDARY = auto()
    NO_WORD_BOUNDARY = auto()


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

_ANCHORS = {"A": Anchor.START, "z": Anchor.END, "b": Anchor.WORD_BOUNDARY, "B": Anchor.NO_WORD_BOUNDARY}


def parse_pattern(text: str) -> Node:
    """The pattern's structure; raises InvalidInput if it has none."""
    if len(text) > MAX_PATTERN_LENGTH:
        raise InvalidInput(
            f"a topic pattern of {len(text)} characters is too long", hint=f"use at most {MAX_PATTERN_LENGTH}"
        )
    return _Parser(text).whole()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._nesting = 0
        self._ignore_case = False
        self._names: set[str] = set()

    @property
    def _at_end(self) -> bool:
        return self._position == len(self._text)

    def _refuse(self, problem: str, start: int) -> NoReturn:
        """`start` is where what is wrong begins; it ends where the parser is."""
        wrong = _shown(self._text[start : self._position])
        raise InvalidInput(
            f"the topic pattern {_shown(self._text)} has {problem} {wrong} at character {start + 1}",
            hint="use RE2's syntax",
        )

    # Structure

    def whole(self) -> Node:
        node = self._choice()
        if not self._at_end:
            start = self._position
            self._next()
            self._refuse("an unmatched", start)
        return node

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while not self._at_end and self._peek() not in "|)":
            if self._take(r"\Q"):
                parts += self._quoted()
            else:
                parts.append(self._atom())
            if parts:
                parts[-1] = self._repeated(parts[-1])
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _quoted(self) -> list[Node]:
        """Up to `\\E`, or the end, every character stands for itself."""
        quoted, _, _ = self._text[self._position :].partition(r"\E")
        self._position = min(self._position + len(quoted) + 2, len(self._text))
        return [self._literal(character) for character in quoted]

    def _repeated(self, part: Node) -> Node:
        start = self._position
        bounds = self._bounds()
        if bounds is None:
            return part
        self._take("?")  # a lazy repetition matches the same names
        if self._bounds() is not None:
            self._refuse("a repetition of a repetition", start)
        return Repeat(part, *bounds)

    def _bounds(self) -> tuple[int, int | None] | None:
        if self._take("*"):
            return 0, None
        if self._take("+"):
            return 1, None
        if self._take("?"):
            return 0, 1
        start = self._position
        counts = self._match(_COUNTS)
        if counts is None:
            return None  # RE2 takes such a brace as itself
        low, comma, high = int(counts[1]), counts[2], counts[3]
        bounds = low, (int(high) if high else None if comma else low)
        if max(low, bounds[1] or 0) > MAX_REPETITIONS:
            self._refuse(f"a repetition of more than {MAX_REPETITIONS} times", start)
        if bounds[1] is not None and bounds[1] < low:
            self._refuse("a repetition whose end is before its start", start)
        return bounds

    def _atom(self) -> Node:
        start = self._position
        character = self._next()
        match character:
            case "(":
                return self._group(start)
            case "[":
                return self._set(start)
            case ".":
                return Characters(TOPIC_CHARACTERS)
            case "^":
                return Anchor.START
            case "$":
                return Anchor.END
            case "\\":
                return self._escape(start)
            case "*" | "+" | "?":
                self._refuse("nothing before the repetition", start)
            case _:
                return self._literal(character)

    # Groups

    def _group(self, start: int) -> Node:
        outer = self._ignore_case
        if self._take("?"):
            flags = self._match(_FLAGS)
            if flags is not None:
                self._ignore_case = ("i" in flags[1] or outer) and "i" not in (flags[2] or "")
                if flags[3] == ")":
                    return Sequence(())  # it holds to the end of the enclosing group
            else:
                self._group_name(start)
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._refuse(f"groups nested deeper than {MAX_NESTING}", start)
        node = self._choice()
        if not self._take(")"):
            self._refuse("no ')' for the group", start)
        self._nesting -= 1
        self._ignore_case = outer
        return node

    def _group_name(self, start: int) -> None:
        name = self._match(_NAME)
        if name is None:
            for opening, what in _ABSENT.items():
                if self._text.startswith(opening, start + 1):
                    self._position = start + 1 + len(opening)
                    self._refuse(f"{what}, which RE2 does not have:", start)
            self._position = min(self._position + 1, len(self._text))
            self._refuse("a group of an unknown kind", start)
        if name[1] in self._names:
            self._refuse("two groups of one name", start)
        self._names.add(name[1])

    # Escapes

    def _escape(self, start: int) -> Node:
        if not self._at_end and self._peek() in _ANCHORS:
            return _ANCHORS[self._next()]
        escaped = self._escaped(start)
        return Characters(escaped) if isinstance(escaped, frozenset) else self._literal(escaped)

    def _escaped(self, start: int) -> str | frozenset[str]:
        """The character that an escape stands for, or the class."""
        if self._at_end:
            self._refuse("a backslash at its end", start)
        code = self._match(_CODE)
        if code is not None:
            return self._coded(code[0], start)
        character = self._next()
        if character in PERL_CLASSES:
            return PERL_CLASSES[character]
        if character in "pP":
            return self._unicode_class(start, negated=character == "P")
        if character in "afnrtv":
            return frozenset()  # control characters: in no topic's name
        if character in "123456789":
            self._refuse("a backreference, which RE2 does not have:", start)
        if character.isalnum() or not character.isascii():
            self._refuse("an unknown escape", start)
        return character

    def _coded(self, code: str, start: int) -> str:
        number = int(code[1:].strip("{}"), 16) if code.startswith("x") else int(code, 8)
        if number > 0x10FFFF:
            self._refuse("no such character as", start)
        return chr(number)

    def _unicode_class(self, start: int, *, negated: bool) -> frozenset[str]:
        named = self._match(_UNICODE_CLASS)
        name = "" if named is None else named[3] or named[2]
        if named is None or name not in UNICODE_CLASSES:
            self._refuse("an unknown Unicode class", start)
        accepted = self._folded(UNICODE_CLASSES[name])
        return TOPIC_CHARACTERS - accepted if negated != bool(named[1]) else accepted

    # Sets

    def _set(self, start: int) -> Node:
        negated = self._take("^")
        accepted: set[str] = set()
        first = True
        while first or not self._take("]"):
            if self._at_end:
                self._refuse("no ']' for the set", start)
            first = False
            accepted |= self._set_item()
        return Characters(TOPIC_CHARACTERS - accepted if negated else frozenset(accepted))

    def _set_item(self) -> frozenset[str]:
        start = self._position
        posix = self._match(_POSIX_CLASS)
        if posix is not None:
            if posix[2] not in POSIX_CLASSES:
                self._refuse("an unknown character class", start)
            accepted = self._folded(POSIX_CLASSES[posix[2]])
            return TOPIC_CHARACTERS - accepted if posix[1] else accepted
        low = self._set_character()
        if isinstance(low, frozenset):
            return low
        rest = self._text[self._position : self._position + 2]
        if len(rest) < 2 or rest[0] != "-" or rest[1] == "]":
            return self._accepted(low)
        self._position += 1
        high = self._set_character()
        if isinstance(high, frozenset) or high < low:
            self._refuse("a range that is none:", start)
        return self._folded(frozenset(one for one in TOPIC_CHARACTERS if low <= one <= high))

    def _set_character(self) -> str | frozenset[str]:
        """The next character inside brackets, or the whole class that an escape there stands for."""
        start = self._position
        character = self._next()
        return self._escaped(start) if character == "\\" else character

    # Characters

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

    def _match(self, expected: re.Pattern[str]) -> re.Match[str] | None:
        found = expected.match(self._text, self._position)
        if found is not None:
            self._position = found.end()
        return found


def _shown(text: str) -> str:
    """As it was written, so that it can be found there, unless it would not show."""
    return f"'{text}'" if text.isprintable() else repr(text)
