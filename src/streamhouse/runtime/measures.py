"""Histograms that cost little to fill: what is counted is a plain attribute of whoever counts it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from time import perf_counter

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""From a sync of a fast disk to a client that has given up."""
BYTES = tuple(float(4**power * 256) for power in range(10))
"""256 bytes to 64 MiB."""
COUNTS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0)

stopwatch_s = perf_counter
"""Seconds since some moment: for durations and nothing else, so it need not be a clock that tests can move."""


class Histogram:
    """How often values fell between bounds, the upper ones included, as Prometheus counts them."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float] = SECONDS) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        """Of each bucket by itself; the last is for what is above all bounds."""
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    @property
    def count(self) -> int:
        return sum(self.counts)

    def quantile(self, share: float, since: Sequence[int] = ()) -> float | None:
        """About which value this share of the values is not above; None without values. `since`: an earlier copy of
        `counts`, after which to look."""
        counts = [now - before for now, before in zip(self.counts, since, strict=True)] if since else self.counts
        return quantile(self.bounds, counts, share)


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """Evenly spread within a bucket; what is above all bounds counts as the last of them."""
    wanted = share * sum(counts)
    if not wanted:
        return None
    below = 0
    lower = 0.0
    for bound, inside in zip(bounds, counts, strict=False):
        if below + inside >= wanted:
            return lower + (bound - lower) * (wanted - below) / inside
        below += inside
        lower = bound
    return lower
