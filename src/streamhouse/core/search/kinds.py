"""What two sides of a comparison can be, as far as their text tells: one that no record can make true is somebody's
mistake, and told before anything is read."""

from __future__ import annotations

from enum import Enum

from streamhouse.core.search.conditions import Literal, Operand


class Kind(Enum):
    """Bytes that are no text count as text."""

    NULL = "null"
    BOOL = "true or false"
    NUMBER = "a number"
    TEXT = "a text"
    LIST = "a list"


_JSON = frozenset(Kind)
_WITH_AN_ORDER = {Kind.NUMBER, Kind.TEXT}


def kinds_of(operand: Operand) -> frozenset[Kind]:
    if isinstance(operand, Literal):
        return frozenset({_kind_of(operand.value)})
    if operand.root in ("offset", "timestamp"):
        return frozenset({Kind.NUMBER})
    if operand.root == "headers" or not (operand.parts or operand.is_json):
        return frozenset({Kind.TEXT, Kind.NULL})
    return _JSON


def can_compare(left: Operand, operator: str, right: Operand) -> bool:
    """False if it holds of no record, or of all."""
    ours, theirs = kinds_of(left), kinds_of(right)
    match operator:
        case "==" | "!=":
            return bool(ours & theirs - {Kind.LIST})
        case "startswith":
            return Kind.TEXT in ours & theirs
        case "contains":
            return Kind.TEXT in ours & theirs or (Kind.LIST in ours and bool(theirs - {Kind.LIST}))
        case _:
            return bool(ours & theirs & _WITH_AN_ORDER)


def name_of(kinds: frozenset[Kind]) -> str:
    """For people: null is what is not there."""
    return "JSON" if kinds == _JSON else " or ".join(kind.value for kind in kinds - {Kind.NULL} or kinds)


def _kind_of(value: str | float | bool | None) -> Kind:
    match value:
        case None:
            return Kind.NULL
        case bool():
            return Kind.BOOL
        case str():
            return Kind.TEXT
        case _:
            return Kind.NUMBER
