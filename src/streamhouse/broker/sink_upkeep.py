"""The chores of exactly-once sinks: batches whose drivers are gone are finished, what was staged in vain is removed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial

from streamhouse.broker.adoption import CLAIM_MS, Adoption
from streamhouse.format.object_keys import STAGING_PREFIX, parse_staging_key
from streamhouse.metadata.sinks import SinkStore
from streamhouse.model.errors import StreamHouseError
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import jittered
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)

_LOOK_MS = 5_000
_CLAIMED_AT_ONCE = 4
_DAY_MS = 86_400_000
# A streaming query repeats its last batch at most, a user's own batch ids may come in any order for some days.
_KEEP_BATCHES_MS = 7 * _DAY_MS
_KEEP_LAST_BATCH_MS = 365 * _DAY_MS
STAGING_GRACES = 24
"""Staged objects wait for the slowest task of their job, so they are kept for this many times `garbage_grace`."""
_REMOVED_AT_ONCE = 500


class SinkUpkeep:
    def __init__(
        self, *, adoption: Adoption, sinks: SinkStore, objects: ObjectStore, clock: Clock, garbage_grace_ms: int
    ) -> None:
        self._adoption = adoption
        self._sinks = sinks
        self._objects = objects
        self._clock = clock
        self._garbage_grace_ms = garbage_grace_ms
        self._tasks = TaskGroup("sinks")

    def start(self) -> None:
        self._tasks.start(self._repeat(self.finish_left_batches, _LOOK_MS), "finish")
        self._tasks.start(self._repeat(self.remove_abandoned, self._garbage_grace_ms), "clean up")

    async def close(self) -> None:
        await self._tasks.cancel()
        await self._adoption.close()

    async def finish_left_batches(self) -> None:
        for batch in await self._sinks.claim_sink_batches(CLAIM_MS, _CLAIMED_AT_ONCE):
            _log.info("finishing batch %d of sink %s, which was left", batch.batch_id, batch.sink_id)
            await self._attempt(partial(self._adoption.resume, batch))

    async def remove_abandoned(self) -> None:
        """Objects of tries that never became a batch: of tasks that failed, and of drivers that died. What has another
        name than sinks give is of no batch."""
        await self._sinks.prune_sink_batches(_KEEP_BATCHES_MS, _KEEP_LAST_BATCH_MS)
        newest_ms = self._clock.now_ms() - STAGING_GRACES * self._garbage_grace_ms
        old: list[str] = []
        foreign: list[str] = []
        async for item in self._objects.list(STAGING_PREFIX):
            if item.modified_at_ms <= newest_ms:
                (foreign if parse_staging_key(item.key) is None else old).append(item.key)
        for start in range(0, len(old), _REMOVED_AT_ONCE):
            removed = await self._adoption.abandon(old[start : start + _REMOVED_AT_ONCE])
            if removed:
                _log.info("removed %d objects that were staged in vain", len(removed))
        for start in range(0, len(foreign), _REMOVED_AT_ONCE):
            await self._objects.delete(foreign[start : start + _REMOVED_AT_ONCE])
        if foreign:
            _log.info("removed %d objects below %s that no sink had staged", len(foreign), STAGING_PREFIX)

    async def _repeat(self, chore: Callable[[], Awaitable[None]], interval_ms: int) -> None:
        """Runs until cancelled."""
        while True:
            await self._clock.sleep_ms(jittered(interval_ms))
            await self._attempt(chore)

    @staticmethod
    async def _attempt(chore: Callable[[], Awaitable[None]]) -> None:
        """What cannot be done now is done next time."""
        try:
            await chore()
        except StreamHouseError as problem:
            _log.warning("a chore of sinks is left for later: %s", problem)
