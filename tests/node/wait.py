"""Waiting for conditions instead of sleeping for durations."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

HUNG_SECONDS = 60.0
"""No condition of these tests takes this long unless something hangs; it is no performance goal."""

_PAUSE_SECONDS = 0.01

Result = TypeVar("Result")


def eventually(
    condition: Callable[[], Result], what: str, *, timeout: float = HUNG_SECONDS, pause: float = _PAUSE_SECONDS
) -> Result:
    """Ask again until the answer is true; the last answer is returned, or AssertionError names what never came.

    A `pause` longer than the usual one is for questions that cost something to answer."""
    deadline = time.monotonic() + timeout
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:.0f} s in vain for: {what}")
        time.sleep(pause)
