"""Time that passes in a moment: the clock is moved, and what a node does in such a time is done by the end of it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from streamhouse.app.node import Node
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.errors import InvalidInput
from streamhouse.testing.clock import MovableClock

_LONGEST_UPLOAD_S = 2
"""Uploads may be failing, as a test has told them to; retention leaves their records for later, as it always does."""


async def let_time_pass(node: Node, clock: MovableClock, duration_ms: int) -> None:
    """The node goes on working meanwhile, so it keeps its leases; clients could not beat, so their sessions end.

    Retention deletes what is older than it may be now, however seldom it looks by itself."""
    if isinstance(duration_ms, bool) or not isinstance(duration_ms, int) or duration_ms < 0:
        raise InvalidInput(f"{duration_ms!r} is not a time that can pass", hint="in milliseconds, and forward")
    engine, groups = node.engine, node.broker.groups
    await engine.leadership.outlast(duration_ms)
    await groups.outlast(duration_ms)
    clock.pass_time(duration_ms)
    outdated = [leader for leader in engine.leadership.leaders.values() if _would_be_uploaded(leader)]
    with suppress(TimeoutError):
        async with asyncio.timeout(_LONGEST_UPLOAD_S):
            await asyncio.gather(*(engine.uploader.flush(leader) for leader in outdated))
    await engine.maintenance.retain_now()
    await groups.catch_up()


def _would_be_uploaded(leader: PartitionLeader) -> bool:
    """By its age; or because retention wants it sooner than that, and looks at segments only."""
    config = leader.config
    is_outlived = "delete" in config.cleanup_policy and 0 <= config.retention_ms <= leader.unuploaded_ms
    return leader.upload_is_due() or is_outlived
