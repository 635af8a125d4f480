"""The chores of the object WAL: ranges that segments cover are given up, objects that nobody committed are removed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Set

from streamhouse.format.object_keys import WAL_PREFIX, parse_wal_object_key
from streamhouse.log.orphans import OrphanWatch
from streamhouse.metadata.wal_objects import WalObjectStore
from streamhouse.model.errors import Unavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import jittered

_log = logging.getLogger(__name__)
_INTERVAL_MS = 10_000
_RETIRED_AT_ONCE = 500


class WalRetirement:
    """Every agent may do it for all: the objects of an agent that never comes back are removed by the others."""

    def __init__(
        self,
        *,
        store: WalObjectStore,
        objects: ObjectStore,
        clock: Clock,
        garbage_grace_ms: int,
        keys_under_way: Callable[[], Set[str]],
    ) -> None:
        """`keys_under_way`: what this agent's own WAL is writing now."""
        self._store = store
        self._objects = objects
        self._clock = clock
        self._orphan_search_ms = garbage_grace_ms // 2
        self._orphans = OrphanWatch(clock, garbage_grace_ms)
        self._keys_under_way = keys_under_way

    async def run(self, interval_ms: int = _INTERVAL_MS) -> None:
        """Until cancelled."""
        last_orphan_search_ms = self._clock.monotonic_ms()
        while True:
            await self._clock.sleep_ms(jittered(interval_ms))
            await self._attempt(self.retire)
            if self._clock.monotonic_ms() - last_orphan_search_ms >= self._orphan_search_ms:
                last_orphan_search_ms = self._clock.monotonic_ms()
                await self._attempt(self.remove_orphans)

    async def retire(self) -> None:
        """What the segments have by now, as garbage whose objects the log's maintenance removes."""
        while await self._store.retire_wal_objects(_RETIRED_AT_ONCE) == _RETIRED_AT_ONCE:
            pass

    async def remove_orphans(self) -> None:
        """Objects that were uploaded but never committed, because the process died in between.

        None of those that are removed can be committed any more: a writer uploads anew what is older than half the
        grace period."""
        listed = [
            item.key async for item in self._objects.list(WAL_PREFIX) if parse_wal_object_key(item.key) is not None
        ]
        # Asked after the listing, so that what was committed meanwhile is among them.
        wanted = {*await self._store.list_wal_object_keys(), *self._keys_under_way()}
        orphans = self._orphans.outlived(key for key in listed if key not in wanted)
        if orphans:
            _log.info("removing %d WAL objects that were never committed", len(orphans))
            await self._objects.delete(orphans)

    @staticmethod
    async def _attempt(chore: Callable[[], Awaitable[None]]) -> None:
        """A chore that cannot be done now is done next time."""
        try:
            await chore()
        except Unavailable as problem:
            _log.warning("clean-up of the WAL is left for later: %s", problem)
