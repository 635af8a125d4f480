"""How far a test sweeps: a few moments in `make test`, as many as asked for in a long run."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

BRISK = ("--segment-bytes", "4KiB", "--segment-age", "50ms", "--wal-file-bytes", "1MiB")
"""Settings with which a few records cross every step of the write path: many segments, commits and trims."""

Item = TypeVar("Item")


def sweep_size(short: int) -> int:
    """`SWEEP=200` in the environment makes every sweep that long."""
    return int(os.environ.get("SWEEP", short))


def spread(items: Sequence[Item], count: int, seed: int) -> list[Item]:
    """About `count` of them, evenly over the whole and somewhere else with every seed."""
    if count >= len(items):
        return list(items)
    stride = len(items) / count
    start = random.Random(seed).random() * stride
    return [items[int(start + index * stride)] for index in range(count)]


def sweep_seed() -> int:
    """`SWEEP_SEED=7` chooses other moments; a failing test names the moment itself."""
    return int(os.environ.get("SWEEP_SEED", 1))
