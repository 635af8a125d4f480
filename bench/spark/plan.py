"""How much is measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A load: so many records with values of so many bytes."""

    value_bytes: int
    records: int

    @property
    def values(self) -> str:
        return "1 KiB" if self.value_bytes == 1024 else f"{self.value_bytes} B"

    @property
    def name(self) -> str:
        return f"values-{self.value_bytes}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The quick plan shows that everything works; its figures mean little."""

    topics: Sequence[Topic]
    maintained: Topic
    partitions: int
    repeats: int
    warm_ups: int
    floor_batches: int
    peers: bool


FULL = Plan(
    topics=(Topic(value_bytes=100, records=3_000_000), Topic(value_bytes=1024, records=600_000)),
    maintained=Topic(value_bytes=100, records=2_000_000),
    partitions=8,
    repeats=3,
    warm_ups=1,
    floor_batches=60,
    peers=True,
)

QUICK = Plan(
    topics=(Topic(value_bytes=100, records=20_000),),
    maintained=Topic(value_bytes=100, records=20_000),
    partitions=2,
    repeats=1,
    warm_ups=0,
    floor_batches=5,
    peers=False,
)
