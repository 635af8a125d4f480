"""How much of the console is measured. The quick plan shows that everything works; its figures mean little."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    few_topics: int
    many_topics: int
    partitions: int
    visits: int
    tail_rate: float
    tail_seconds: float


FULL = Plan(few_topics=10, many_topics=1000, partitions=10, visits=9, tail_rate=5000.0, tail_seconds=15.0)
QUICK = Plan(few_topics=2, many_topics=20, partitions=1, visits=1, tail_rate=500.0, tail_seconds=2.0)
