"""An agent's row in the metadata store: registered, kept alive by heartbeats, removed at the end."""

from __future__ import annotations

import logging

from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.cluster import AgentInfo, AgentRow, AgentStore
from streamhouse.model.errors import Unavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import jittered
from streamhouse.runtime.retry import backoff_ms

_log = logging.getLogger(__name__)


class Membership:
    def __init__(self, *, store: AgentStore, info: AgentInfo, node_id: int, clock: Clock, heartbeat_ms: int) -> None:
        self.info = info
        self._store = store
        self._node_id = node_id
        self._clock = clock
        self._heartbeat_ms = heartbeat_ms
        self._is_draining = False

    async def register(self) -> AgentRow:
        row = await self._store.register_agent(self.info, self._node_id)
        self._node_id = row.node_id
        return row

    async def keep_alive(self) -> None:
        """Runs until cancelled. Heartbeats are jittered, so that agents which started together do not stay together."""
        while True:
            # Two thirds to four thirds of the interval.
            await self._clock.sleep_ms(jittered(self._heartbeat_ms * 4 / 3))
            for wait_ms in backoff_ms(limit_ms=self._heartbeat_ms):
                try:
                    await self.beat()
                    break
                except Unavailable as problem:
                    _log.warning("cannot send a heartbeat, trying again: %s", problem)
                    await self._clock.sleep_ms(wait_ms)

    async def beat(self) -> None:
        if not await self._store.heartbeat_agent(self.info.agent_id):
            await self.register()
            if self._is_draining:
                await self.drain()

    async def drain(self) -> None:
        """Ask the others to take over everything."""
        self._is_draining = True
        await self._store.drain_agent(self.info.agent_id)

    async def say_durability(self) -> None:
        """Of topics that say none themselves, as it is in `info` by now."""
        await self._store.say_durability(self.info.agent_id, self.info.durability)

    async def say_store_access(self, access: StoreAccess) -> None:
        await self._store.say_store_access(self.info.agent_id, access)

    async def deregister(self) -> None:
        try:
            await self._store.deregister_agent(self.info.agent_id)
        except Unavailable as problem:
            _log.warning("not deregistered, the others will notice by the missing heartbeat: %s", problem)
