"""Whether what is measured again and again has risen far above what it was in the last hour, and stays there."""

from __future__ import annotations

from collections import deque
from math import inf
from statistics import median

TIMES = 20
"""So many times the usual is far above it."""
FEWEST = 20
"""With fewer measurements nothing is known to be usual."""
HELD_MS = 120_000
"""For so long it must have been far above without a pause, so that a hiccup is none; for half of it, if it is twice as
high as that takes, and so on."""
_KEPT_MS = 3_600_000
_MOST = 1_000


class Rise:
    """What is far above the usual is not taken into it, so that a rise is told of until there is nothing left to
    compare with: for an hour, if it stays so."""

    def __init__(self, least: float) -> None:
        """What is not above `least` is never far above anything."""
        self._least = least
        self._usual: deque[tuple[int, float]] = deque(maxlen=_MOST)
        self._above_ms: int | None = None
        self._held_ms = 0.0

    def add(self, at_ms: int, value: float | None) -> None:
        """By a clock that is never set back; None if nothing could be measured."""
        while self._usual and at_ms - self._usual[0][0] > _KEPT_MS:
            self._usual.popleft()
        limit = self._limit()
        if value is not None and value > limit:
            if self._above_ms is not None:
                self._held_ms += (at_ms - self._above_ms) * value / limit
            self._above_ms = at_ms
            return
        self._above_ms, self._held_ms = None, 0.0
        if value is not None:
            self._usual.append((at_ms, value))

    def risen_from(self, value: float) -> float | None:
        """The usual, the median, if it has risen far above that, and still is there with this value."""
        return self._median() if self._held_ms >= HELD_MS and value > self._limit() else None

    def _limit(self) -> float:
        """What is above this is far above the usual."""
        usual = self._median()
        return inf if usual is None else max(self._least, TIMES * usual)

    def _median(self) -> float | None:
        if len(self._usual) < FEWEST:
            return None
        return median(value for _, value in self._usual)
