"""The cluster as this node sees it: what the metadata store says, or said before it fell silent, and what the agents
themselves answer. However many watch, each of them is asked once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from streamhouse.broker.cluster_work import Asked
from streamhouse.client.peer import NodeWork
from streamhouse.cluster.state import AgentState, ClusterState, read_cluster_health
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.watched import Silence, Watched
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.recent import Recent

_STATE_AGE_MS = 500
"""Browsers ask every second or two, each of them; the metadata store hears of it twice a second at most."""
_ASKED_AGE_MS = 1_000
_PATIENCE_MS = 2_000

T = TypeVar("T")


class Seen(NamedTuple):
    """`state` is as the metadata store had it at `read_at_ms`; `metadata_silence` is why there is no newer one."""

    state: ClusterState
    read_at_ms: int
    metadata_silence: Silence | None
    work: Asked[NodeWork]

    def unanswered(self, agent_id: str) -> Silence | None:
        return self.work.silent.get(agent_id)

    @property
    def unanswered_live(self) -> int:
        """Agents that count as alive and do not answer."""
        states = self.state.states()
        return sum(states.get(agent_id) is AgentState.LIVE for agent_id in self.work.silent)


class ClusterWatch:
    def __init__(self, context: DoorContext) -> None:
        self._context = context
        clock = context.broker.clock
        self._tasks = TaskGroup("cluster-watch")
        self._store = self.also(self._read, "cluster")
        self._looks = Recent(self._store.look, clock, _STATE_AGE_MS)
        self._asked = Recent(self._ask, clock, _ASKED_AGE_MS)

    async def state(self) -> ClusterState:
        """As it is now, or was a moment ago, or an error."""
        await self._looks.get()
        return self._current()

    async def state_now(self) -> ClusterState:
        """For programs, which look at what they have just done: as it is now, or an error."""
        await self._store.look_anew()
        return self._current()

    async def seen_now(self) -> Seen:
        """The same, with what the agents answer."""
        await self._store.look_anew()
        seen = await self._seen()
        if seen.metadata_silence is not None:
            raise self._unavailable()
        return seen

    async def seen(self) -> Seen:
        """As it is now, or was a moment ago, or last; an error only if nothing was ever known."""
        await self._looks.get()
        return await self._seen()

    async def _seen(self) -> Seen:
        work = await self._asked.get()
        if self._store.answer is None:
            raise self._unavailable()
        known = self._store.answer
        return Seen(known.value, known.at_ms, self._store.silence, work)

    def also(self, ask: Callable[[], Awaitable[T]], name: str) -> Watched[T]:
        """Something else that the metadata store is asked for, with the same patience, until this is closed."""
        return Watched(ask, self._context.broker.clock, self._tasks, name, patience_ms=_PATIENCE_MS)

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _read(self) -> ClusterState:
        return await read_cluster_health(self._context.metadata, self._context.broker.settings.liveness)

    async def _ask(self) -> Asked[NodeWork]:
        known = self._store.answer
        return await self._context.work.ask(() if known is None else known.value.agents)

    def _current(self) -> ClusterState:
        if self._store.silence is not None or self._store.answer is None:
            raise self._unavailable()
        return self._store.answer.value

    def _unavailable(self) -> MetadataUnavailable:
        why = "" if self._store.silence is None else f": {self._store.silence.why}"
        return MetadataUnavailable(f"the metadata store does not answer{why}", hint="try again when it is back")
