"""Whether the event loop keeps up."""

from __future__ import annotations

import asyncio

from streamhouse.runtime.measures import Histogram, stopwatch_s

_INTERVAL_S = 0.25


async def watch_loop(delay_seconds: Histogram) -> None:
    """Until cancelled: sleep, and note how much longer than asked for that took."""
    while True:
        begun_s = stopwatch_s()
        await asyncio.sleep(_INTERVAL_S)
        delay_seconds.observe(max(0.0, stopwatch_s() - begun_s - _INTERVAL_S))
