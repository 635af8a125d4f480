"""Rows of the result from the costs of our work and of the limit's."""

from __future__ import annotations

from collections.abc import Iterator

from bench.rows import Goal, Row
from bench.spark.processor import Cost


def beside(scenario: str, name: str, ours: Cost, limit: Cost, limit_name: str, goal: Goal) -> Iterator[Row]:
    """One for processor time, which the goal is about, and one for time on the wall."""
    yield per_cpu_second(scenario, f"{name}, per CPU-second", ours, limit, limit_name, goal)
    yield Row(
        scenario=scenario,
        name=name,
        figure=ours.per_second,
        unit="rows/s",
        limit=limit.per_second,
        limit_name=limit_name,
        details={"cores_used": ours.cores_used, "cores_used_by_limit": limit.cores_used},
    )


def per_cpu_second(scenario: str, name: str, ours: Cost, limit: Cost, limit_name: str, goal: Goal | None = None) -> Row:
    return Row(
        scenario=scenario,
        name=name,
        figure=ours.per_cpu_second,
        unit="rows",
        limit=limit.per_cpu_second,
        limit_name=limit_name,
        goal=goal,
        details={"cpu_seconds": ours.cpu_seconds, "node_cpu_seconds": ours.node_cpu_seconds},
    )
