"""A row of the result: our figure, the limit measured beside it, their ratio, and the goal for that ratio."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Direction(Enum):
    AT_LEAST = "≥"
    AT_MOST = "≤"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    direction: Direction
    bound: float
    unit: str = "x"

    def met_by(self, value: float) -> bool:
        return value >= self.bound if self.direction is Direction.AT_LEAST else value <= self.bound

    def __str__(self) -> str:
        return f"{self.direction.value} {self.bound:g} {self.unit}"


def at_least(bound: float, unit: str = "x") -> Goal:
    return Goal(direction=Direction.AT_LEAST, bound=bound, unit=unit)


def at_most(bound: float, unit: str = "x") -> Goal:
    return Goal(direction=Direction.AT_MOST, bound=bound, unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`figure` is None where it could not be measured here; `note` then says why.

    The goal is about the ratio of figure to limit, or about the figure itself where there is no limit.
    """

    scenario: str
    name: str
    figure: float | None
    unit: str
    limit: float | None = None
    limit_name: str = ""
    goal: Goal | None = None
    note: str = ""
    details: dict[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        if self.figure is None or not self.limit:
            return None
        return self.figure / self.limit

    @property
    def met(self) -> bool | None:
        judged = self.ratio if self.limit is not None else self.figure
        return None if self.goal is None or judged is None else self.goal.met_by(judged)
