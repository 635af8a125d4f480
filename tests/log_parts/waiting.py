"""Waiting on the event loop for a condition instead of for a duration."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

HUNG_SECONDS = 60.0
"""Nothing waited for here takes this long unless it never comes."""


async def until(condition: Callable[[], object], what: str, *, timeout: float = HUNG_SECONDS) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    while not condition():
        assert loop.time() < deadline, f"waited {timeout:.0f} s in vain for: {what}"
        await asyncio.sleep(0.001)
