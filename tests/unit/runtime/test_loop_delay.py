"""The watch over the event loop sees when it is kept from turning."""

from __future__ import annotations

import asyncio
import time

from log_parts.waiting import until
from streamhouse.runtime.loop_delay import watch_loop
from streamhouse.runtime.measures import Histogram
from streamhouse.runtime.tasks import TaskGroup


async def test_a_loop_that_stands_still_is_seen() -> None:
    delays = Histogram()
    tasks = TaskGroup("test")
    tasks.start(watch_loop(delays), "watch")
    await asyncio.sleep(0)  # its first turn
    time.sleep(1.0)  # noqa: ASYNC251 - this is what must be noticed
    await until(lambda: delays.count > 0, "a look at the loop")
    await tasks.cancel()
    assert delays.total > 0.5
