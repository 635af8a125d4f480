"""A subscription by pattern: which topic names it takes, decided in time linear in the name whatever the pattern is.

A backtracking matcher lets one client stop the coordinator with `(a+)+b`. This one follows all ways through the
pattern at once, and remembers the sets of ways that it has met, so that a name costs a dictionary look-up a character.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import assert_never

from streamhouse.core.groups.consumer_pattern_classes import WORD_CHARACTERS
from streamhouse.core.groups.consumer_pattern_syntax import (
    Anchor,
    Characters,
    Choice,
    Node,
    Repeat,
    Sequence,
    parse_pattern,
)
from streamhouse.model.errors import InvalidInput

MAX_STATES = 2_048
MAX_REMEMBERED = 1_024
_MATCH = 0  # the first state of every automaton is the one that has read it all


class TopicPattern:
    """A compiled pattern, matched against whole names as Kafka does."""

    __slots__ = ("_automaton", "_root", "_seen", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._automaton = _Automaton(parse_pattern(text))
        self._seen: dict[tuple[frozenset[int], _Last], _Ways] = {}
        self._root = self._ways(self._automaton.initial, _Last.NOTHING)

    def matches(self, name: str) -> bool:
        ways = self._root
        for character in name:
            following = ways.after.get(character)
            if following is None:
                states = self._automaton.read(ways.states, ways.last, character)
                following = self._ways(states, _kind(character))
                ways.after[character] = following
            ways = following
        return ways.accepting

    def _ways(self, states: frozenset[int], last: _Last) -> _Ways:
        known = self._seen.get((states, last))
        if known is not None:
            return known
        if len(self._seen) >= MAX_REMEMBERED:  # forget rather than grow: the limit on what one pattern can cost
            self._seen.clear()
            self._root = _Ways(self._automaton, self._automaton.initial, _Last.NOTHING)
        ways = self._seen[states, last] = _Ways(self._automaton, states, last)
        return ways


class _Last(Enum):
    """What was read last, as far as an anchor asks."""

    NOTHING = auto()
    WORD = auto()
    OTHER = auto()


def _kind(character: str) -> _Last:
    return _Last.WORD if character in WORD_CHARACTERS else _Last.OTHER


def _anchors(last: _Last, following: _Last) -> frozenset[Anchor]:
    """Those that hold between two characters, or before the first or after the last."""
    at_border = (last is _Last.WORD) != (following is _Last.WORD)
    holding = {Anchor.WORD_BOUNDARY if at_border else Anchor.NO_WORD_BOUNDARY}
    if last is _Last.NOTHING:
        holding.add(Anchor.START)
    if following is _Last.NOTHING:
        holding.add(Anchor.END)
    return frozenset(holding)


class _Ways:
    """All states that the characters read so far can have led to, and where each next character leads."""

    __slots__ = ("accepting", "after", "last", "states")

    def __init__(self, automaton: _Automaton, states: frozenset[int], last: _Last) -> None:
        self.states = states
        self.last = last
        self.accepting = automaton.accepts(states, last)
        self.after: dict[str, _Ways] = {}


class _Automaton:
    """States with their ways on: a set of characters and one state, an anchor and one state, or several states."""

    def __init__(self, pattern: Node) -> None:
        self._accepted: list[frozenset[str] | Anchor | None] = [frozenset()]
        self._next: list[tuple[int, ...]] = [()]
        self._work = 0
        self.initial = frozenset((self._emit(pattern, _MATCH),))

    def read(self, states: frozenset[int], last: _Last, character: str) -> frozenset[int]:
        """Where the character leads from these states, which are as the one before it left them."""
        stepped: list[int] = []
        for state in self._reach(states, _anchors(last, _kind(character))):
            accepted = self._accepted[state]
            if isinstance(accepted, frozenset) and character in accepted:
                stepped += self._next[state]
        return frozenset(stepped)

    def accepts(self, states: frozenset[int], last: _Last) -> bool:
        return _MATCH in self._reach(states, _anchors(last, _Last.NOTHING))

    def _reach(self, states: Iterable[int], holding: frozenset[Anchor]) -> set[int]:
        """These states and those reached from them without reading, where these anchors hold."""
        reached = set(states)
        waiting = list(reached)
        while waiting:
            state = waiting.pop()
            condition = self._accepted[state]
            if condition is None or condition in holding:
                for following in self._next[state]:
                    if following not in reached:
                        reached.add(following)
                        waiting.append(following)
        return reached

    def _emit(self, node: Node, after: int) -> int:
        """Add the states of one part of the pattern; gives the state to enter it by."""
        self._work += 1
        if self._work > MAX_STATES:  # counts what is empty too: `((){1000}){1000}` has no states but much work
            raise InvalidInput(
                "a topic pattern is too large once its repetitions are written out",
                hint="use smaller counts, or subscribe by names",
            )
        match node:
            case Characters(accepted=accepted):
                return self._add(accepted, after)
            case Anchor():
                return self._add(node, after)
            case Sequence(parts=parts):
                for part in reversed(parts):
                    after = self._emit(part, after)
                return after
            case Choice(options=options):
                return self._add(None, *(self._emit(option, after) for option in options))
            case Repeat():
                return self._emit_repeat(node, after)
            case _:
                assert_never(node)

    def _emit_repeat(self, repeat: Repeat, after: int) -> int:
        entry = after
        if repeat.high is None:
            entry = self._add(None)
            self._next[entry] = (self._emit(repeat.part, entry), after)
        else:
            for _ in range(repeat.high - repeat.low):
                entry = self._add(None, self._emit(repeat.part, entry), after)
        for _ in range(repeat.low):
            entry = self._emit(repeat.part, entry)
        return entry

    def _add(self, accepted: frozenset[str] | Anchor | None, *following: int) -> int:
        self._accepted.append(accepted)
        self._next.append(following)
        return len(self._next) - 1
