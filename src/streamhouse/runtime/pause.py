"""Waiting on a thread without an event loop."""

from __future__ import annotations

import time


def pause_ms(duration_ms: float) -> None:
    """Block the calling thread; never on an event loop, which has `Clock.sleep_ms`."""
    time.sleep(duration_ms / 1000)
