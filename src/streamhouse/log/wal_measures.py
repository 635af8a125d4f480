"""What a WAL counts."""

from __future__ import annotations

from streamhouse.runtime.measures import BYTES, COUNTS, Histogram


class WalMeasures:
    """Of each sync: how long it took from the moment when the first of its batches was handed over until all of them
    were durable, how many they were, and how large together. `failures`: how often writing had to be given up."""

    __slots__ = ("batches", "bytes", "failures", "seconds")

    def __init__(self) -> None:
        self.seconds = Histogram()
        self.batches = Histogram(COUNTS)
        self.bytes = Histogram(BYTES)
        self.failures = 0

    def synced(self, seconds: float, batches: int, size_bytes: int) -> None:
        self.seconds.observe(seconds)
        self.batches.observe(batches)
        self.bytes.observe(size_bytes)
