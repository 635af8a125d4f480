"""Says to the others whether this agent reaches the object store, when there is a reason to ask.

There is one when what was appended here does not become durable, when what is to be led here cannot be read, and when
another agent does not reach the store: whoever should lead its partitions instead has to show first that it does. In
between nothing is asked of the store."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from streamhouse.cluster.membership import Membership
from streamhouse.cluster.view import ClusterView
from streamhouse.core.placement.store_access import StoreAccess, next_access
from streamhouse.format.object_keys import probe_key
from streamhouse.model.errors import AlreadyExists, NotFound, Unavailable
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock

_log = logging.getLogger(__name__)
_PROBE = bytes(16 * 2**10)
"""More than the largest packet: what lets only small ones through does not pass for a way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StorePatience:
    """How long what was appended, or is to be read, may wait for the store until that is looked into, and until it is
    taken for stalled; how long a probe may take, how soon one that succeeded is repeated, and for how long they must
    until all is as before. `last_probe_ms`: how long one may take on which only depends whether others are troubled."""

    look_ms: int = 500
    last_probe_ms: int = 500
    suspect_ms: int = 1_500
    stalled_ms: int = 4_000
    probe_ms: int = 3_000
    again_ms: int = 2_000
    recovery_ms: int


class StoreWatch:
    def __init__(
        self,
        *,
        membership: Membership,
        view: ClusterView,
        objects: ObjectStore,
        overdue_ms: Callable[[], int],
        clock: Clock,
        patience: StorePatience,
        known: Callable[[StoreAccess], None] = lambda access: None,
    ) -> None:
        """`overdue_ms`: for how long nothing has become durable, or been read, that should have. `known` hears what is
        found, whether or not the others can be told."""
        self._membership = membership
        self._agent_id = membership.info.agent_id
        self._view = view
        self._objects = objects
        self._overdue_ms = overdue_ms
        self._clock = clock
        self._patience = patience
        self._known = known
        self._access = StoreAccess.USUAL
        self._failed_at_ms = clock.monotonic_ms()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            is_well = self._access in (StoreAccess.PROVEN, StoreAccess.RECOVERING)
            await self._clock.sleep_ms(self._patience.again_ms if is_well else self._patience.look_ms)
            try:
                await self.look()
            except Unavailable as problem:
                _log.warning("cannot tell the others about the object store, trying again: %s", problem)

    async def look(self) -> None:
        others = [agent for agent in self._view.live if agent.info.agent_id != self._agent_id]
        is_other_stalled = any(agent.store_access is StoreAccess.STALLED for agent in others)
        has_reason = is_other_stalled or (others and self._overdue_ms() >= self._patience.suspect_ms)
        access = StoreAccess.USUAL
        if has_reason or self._access in (StoreAccess.STALLED, StoreAccess.RECOVERING):
            wrote_probe = await self._probe(self._patience.probe_ms)
            now_ms = self._clock.monotonic_ms()
            if not wrote_probe:
                self._failed_at_ms = now_ms
            access = next_access(
                self._access,
                is_overdue=self._overdue_ms() >= self._patience.stalled_ms,
                wrote_probe=wrote_probe,
                is_other_stalled=is_other_stalled,
                recovered_for_ms=now_ms - self._failed_at_ms,
                recovery_ms=self._patience.recovery_ms,
            )
        await self._say(access)

    async def _say(self, access: StoreAccess) -> None:
        """Again, if the row that it was said in was made anew."""
        row = self._view.agents.get(self._agent_id)
        if access is self._access and (row is None or row.store_access is access):
            return
        if access is not self._access:
            level = logging.WARNING if access is StoreAccess.STALLED else logging.INFO
            _log.log(level, "the way to the object store is %s", access.value or "as usual")
            self._access = access
            self._known(access)
        try:
            await self._membership.say_store_access(access)
        except NotFound:
            return  # not registered, which its heartbeat mends
        if access is StoreAccess.USUAL:
            await self._remove_probe()

    async def is_reached_again(self) -> bool:
        """For who is about to give away what it leads: the store may have come back for all at once."""
        return await self._probe(self._patience.last_probe_ms)

    async def _probe(self, timeout_ms: int) -> bool:
        """Whether one can be written and read. Always under the same key, so that there is never more than one left
        behind."""
        key = probe_key(self._agent_id)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._objects.delete([key])
                with suppress(AlreadyExists):  # it came late, from an earlier probe, behind the delete
                    await self._objects.create(key, [_PROBE])
                with suppress(NotFound):  # and so may the delete of an earlier one
                    await self._objects.get(key)
        except (Unavailable, TimeoutError):
            return False
        return True

    async def _remove_probe(self) -> None:
        try:
            async with asyncio.timeout(self._patience.probe_ms / 1000):
                await self._objects.delete([probe_key(self._agent_id)])
        except (Unavailable, TimeoutError):
            return  # the next one takes its place
