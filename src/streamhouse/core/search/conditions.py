"""Conditions on a record as a tree, which says of each record whether it holds.

Nothing of a record makes it fail: what cannot be compared is not equal, not less and not more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from streamhouse.core.search.fields import Field, Row


@dataclass(frozen=True, slots=True)
class Literal:
    value: str | int | float | bool | None

    def of(self, _: Row) -> object:
        return self.value


Operand = Field | Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    left: Operand
    operator: str
    right: Operand

    def holds(self, row: Row) -> bool:
        return COMPARISONS[self.operator](self.left.of(row), self.right.of(row))


@dataclass(frozen=True, slots=True)
class All:
    conditions: tuple[Condition, ...]

    def holds(self, row: Row) -> bool:
        return all(condition.holds(row) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class OneOf:
    conditions: tuple[Condition, ...]

    def holds(self, row: Row) -> bool:
        return any(condition.holds(row) for condition in self.conditions)


@dataclass(frozen=True, slots=True)
class Not:
    condition: Condition

    def holds(self, row: Row) -> bool:
        return not self.condition.holds(row)


Condition = Comparison | All | OneOf | Not


def reads_json(condition: Condition) -> bool:
    """Whether it asks for more than the text of keys, values and headers."""
    match condition:
        case Comparison():
            return any(isinstance(side, Field) and side.reads_json for side in (condition.left, condition.right))
        case Not():
            return reads_json(condition.condition)
        case All() | OneOf():
            return any(map(reads_json, condition.conditions))


def _same(left: object, right: object) -> bool:
    """Of texts, numbers, true, false and null; lists and objects are the same as nothing. True is 1 in Python, but not
    in JSON."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return (left is None or isinstance(left, str | bytes | int | float)) and left == right


def _order(left: object, right: object) -> int | None:
    """-1, 0 or 1; None of what has none: of texts and of numbers among themselves there is one."""
    if isinstance(left, str) and isinstance(right, str):
        return (left > right) - (left < right)
    if isinstance(left, bool) or isinstance(right, bool):
        return None
    if isinstance(left, int | float) and isinstance(right, int | float):
        return (left > right) - (left < right)
    return None


def _contains(left: object, right: object) -> bool:
    if isinstance(left, list):
        return any(_same(each, right) for each in left)
    if isinstance(left, bytes):
        return isinstance(right, str) and right.encode() in left
    return isinstance(left, str) and isinstance(right, str) and right in left


def _starts_with(left: object, right: object) -> bool:
    if isinstance(left, bytes):
        return isinstance(right, str) and left.startswith(right.encode())
    return isinstance(left, str) and isinstance(right, str) and left.startswith(right)


COMPARISONS: Mapping[str, Callable[[object, object], bool]] = MappingProxyType(
    {
        "==": _same,
        "!=": lambda left, right: not _same(left, right),
        "<": lambda left, right: _order(left, right) == -1,
        "<=": lambda left, right: _order(left, right) in (-1, 0),
        ">": lambda left, right: _order(left, right) == 1,
        ">=": lambda left, right: _order(left, right) in (0, 1),
        "contains": _contains,
        "startswith": _starts_with,
    }
)
