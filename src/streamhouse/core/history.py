"""What was measured again and again, of the last hour or so: a ring of so many samples, which never takes more memory.

Where measuring paused, there is a sample of nothing, so that whoever draws a line leaves a gap."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Literal, NamedTuple

Trend = Literal["growing", "falling", "steady"]
_NOTICED = 0.1
"""A smaller share of what there was is no trend."""


class Samples(NamedTuple):
    """Oldest first; the values of each series are None where nothing was known."""

    times_ms: list[int]
    series: dict[str, list[float | None]]


class History:
    def __init__(self, names: Sequence[str], capacity: int, *, longest_pause_ms: int) -> None:
        self._times = array("q", [0] * capacity)
        self._values = {name: array("d", [nan] * capacity) for name in names}
        self._capacity = capacity
        self._longest_pause_ms = longest_pause_ms
        self._count = 0
        self._next = 0

    def __len__(self) -> int:
        return self._count

    def add(self, at_ms: int, values: Mapping[str, float | None]) -> None:
        """What is not said is not known. When the clock was set back, what was measured at times that it has yet to
        reach is left out."""
        while self._count and self._times[self._next - 1] >= at_ms:
            self._next = (self._next - 1) % self._capacity
            self._count -= 1
        if self._count:
            last_ms = self._times[self._next - 1]
            if at_ms - last_ms > self._longest_pause_ms:
                self._put(last_ms + 1, {})
        self._put(at_ms, values)

    def samples(self, since_ms: int = 0) -> Samples:
        start = self._next - self._count
        places = [place for place in range(start, self._next) if self._times[place] >= since_ms]
        return Samples(
            times_ms=[self._times[place] for place in places],
            series={
                name: [None if isnan(values[place]) else values[place] for place in places]
                for name, values in self._values.items()
            },
        )

    def _put(self, at_ms: int, values: Mapping[str, float | None]) -> None:
        self._times[self._next] = at_ms
        for name, kept in self._values.items():
            value = values.get(name)
            kept[self._next] = nan if value is None else value
        self._next = (self._next + 1) % self._capacity
        self._count = min(self._capacity, self._count + 1)


def trend(values: Sequence[float | None]) -> Trend | None:
    """Of values that were measured at equal distances: their last third beside their first. None if they are too few to
    say."""
    known = [value for value in values if value is not None]
    third = len(known) // 3
    if not third:
        return None
    before, after = sum(known[:third]) / third, sum(known[-third:]) / third
    if abs(after - before) <= max(1.0, _NOTICED * before):
        return "steady"
    return "growing" if after > before else "falling"
