"""Trying again: how long to wait between attempts at something that must not be given up."""

from __future__ import annotations

from collections.abc import Iterator

from streamhouse.runtime.entropy import jittered


def backoff_ms(first_ms: float = 50, limit_ms: float = 5_000) -> Iterator[float]:
    """Waits that double up to a limit, each with jitter; endless."""
    wait = first_ms
    while True:
        yield jittered(wait)
        wait = min(wait * 2, limit_ms)
