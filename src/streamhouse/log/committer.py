"""Registers segments in the metadata store, those that are ready together in one transaction."""

from __future__ import annotations

import asyncio
import logging

from streamhouse.metadata.store import SegmentCommit, SegmentStore
from streamhouse.model.errors import Unavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)
_MAX_COMMITS = 100


class SegmentCommitter:
    """While one transaction runs the next one gathers, so that many small partitions share the cost of a sync."""

    def __init__(self, store: SegmentStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._tasks = TaskGroup("committer")
        self._waiting: list[tuple[SegmentCommit, asyncio.Future[None]]] = []
        self._running = False

    async def commit(self, commit: SegmentCommit) -> None:
        """Returns when it is registered; StaleEpoch if the lease that allows it is gone. Waits for the store as long
        as it takes: the commit id makes repeats harmless."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((commit, done))
        if not self._running:
            self._running = True
            self._tasks.start(self._run(), "commit")
        await done

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MAX_COMMITS], self._waiting[_MAX_COMMITS:]
                try:
                    results = await self._try_until_answered([commit for commit, _ in batch])
                except Exception as unexpected:
                    results = [unexpected] * len(batch)
                for (_, done), problem in zip(batch, results, strict=True):
                    if done.cancelled():
                        continue
                    if problem is None:
                        done.set_result(None)
                    else:
                        done.set_exception(problem)
        finally:
            self._running = False

    async def _try_until_answered(self, commits: list[SegmentCommit]) -> list[Exception | None]:
        for wait_ms in backoff_ms():
            try:
                return await self._store.commit_segments(commits)
            except Unavailable as problem:
                _log.warning("cannot register %d segments, trying again: %s", len(commits), problem)
                await self._clock.sleep_ms(wait_ms)
        raise AssertionError("the waits are endless")
