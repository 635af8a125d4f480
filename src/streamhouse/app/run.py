"""A node as a process: until somebody asks it to end."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Collection
from dataclasses import replace

import uvloop

from streamhouse.app.doors import Door
from streamhouse.app.node import Node
from streamhouse.app.options import is_shared
from streamhouse.model.errors import Unavailable
from streamhouse.model.settings import Settings
from streamhouse.runtime.kernels import KERNELS, missing_kernels
from streamhouse.runtime.logs import configure_logs
from streamhouse.runtime.measures import stopwatch_s

_log = logging.getLogger(__name__)
_START_PATIENCE_S = 60.0


def serve(
    settings: Settings, announce: Callable[[str], None], *, is_agent: bool = True, given: Collection[str] = ()
) -> int:
    """Run a node until SIGTERM or SIGINT; blocking. Not 0 if it ended because it could not go on. `given`: the settings
    that a flag or a variable has set."""
    configure_logs(settings, sys.stderr)
    return uvloop.run(_serve(settings, announce, is_agent=is_agent, given=given))


def run_agent(settings: Settings, announce: Callable[[str], None], *, given: Collection[str] = ()) -> int:
    """Run an agent alone: on shared metadata its records are safe from the loss of its machine by default."""
    if not settings.durability and is_shared(settings):
        settings = replace(settings, durability="object")
    return serve(settings, announce, given=given)


async def _serve(settings: Settings, announce: Callable[[str], None], *, is_agent: bool, given: Collection[str]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if missing := missing_kernels():
        _log.warning(
            "%d of %d kernels are not compiled (%s): this node works and is many times slower. Install a C compiler "
            "(gcc) and the headers of Python, and install streamhouse again",
            len(missing),
            len(KERNELS),
            ", ".join(missing),
        )
    node = await _started(
        lambda: Node(settings, is_agent=is_agent, opens=list(Door), failed=stop.set, given=given), stop
    )
    # For whoever started the process and waits for it.
    announce(" ".join(["ready", *(f"{name}={address}" for name, address in node.addresses.items())]))
    await stop.wait()
    _log.info("draining")
    await node.drain()
    return 1 if node.has_failed else 0


async def _started(new_node: Callable[[], Node], stop: asyncio.Event) -> Node:
    """A database or an object store that does not answer may only be slow, as all is on a machine that has just begun:
    it is asked again for a while. One that refuses is not."""
    begun_s = stopwatch_s()
    while True:
        node = new_node()
        try:
            await node.start()
        except Unavailable as problem:
            if not problem.is_unanswered or stop.is_set() or stopwatch_s() - begun_s > _START_PATIENCE_S:
                raise
            _log.warning("not started yet, trying again: %s", problem)
        else:
            return node
