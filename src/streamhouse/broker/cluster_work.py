"""What all nodes do, asked of each of them by the one that somebody watches, and who of them does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from streamhouse.client.peer import NodeWal, NodeWork, Peer, Peers
from streamhouse.metadata.cluster import AgentRow
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.watched import Silence, Watched

T = TypeVar("T")
ANSWER_MS = 1_500
"""Who watches wants to see the others, not to wait for one. An agent takes milliseconds."""
_AT_ONCE = 32
"""Questions under way."""


class Asked(NamedTuple, Generic[T]):
    """By agent: what those said that answered, and since when the others have not. Of an agent that has no address for
    others nothing is known."""

    answers: Mapping[str, T]
    silent: Mapping[str, Silence]


class ClusterWork:
    def __init__(
        self,
        agent_id: str,
        own: Callable[[], NodeWork],
        own_wal: Callable[[], NodeWal],
        peers: Peers,
        clock: Clock,
    ) -> None:
        self.agent_id = agent_id
        self.own = own
        """What this node does, now."""
        self.own_wal = own_wal
        tasks = TaskGroup("cluster-work")
        self._tasks = tasks
        self._work = _Rounds(peers, clock, tasks, lambda peer: peer.work(timeout_ms=ANSWER_MS))
        self._wals = _Rounds(peers, clock, tasks, lambda peer: peer.wal(timeout_ms=ANSWER_MS))

    async def ask(self, agents: Sequence[AgentRow]) -> Asked[NodeWork]:
        """What each of these does, other than this one. Also those are asked whose heartbeats come no more: one that
        answers all the same is cut off from the metadata store, and not dead."""
        return await self._work.ask(self._others(agents))

    async def ask_wals(self, agents: Sequence[AgentRow]) -> Asked[NodeWal]:
        return await self._wals.ask(self._others(agents))

    async def close(self) -> None:
        await self._tasks.cancel()

    def _others(self, agents: Sequence[AgentRow]) -> dict[str, str]:
        infos = [agent.info for agent in agents]
        return {info.agent_id: info.address for info in infos if info.address and info.agent_id != self.agent_id}


class _Rounds(Generic[T]):
    """One question, put to all agents at the same time."""

    def __init__(self, peers: Peers, clock: Clock, tasks: TaskGroup, put: Callable[[Peer], Awaitable[T]]) -> None:
        self._peers = peers
        self._clock = clock
        self._tasks = tasks
        self._put = put
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._watched: dict[str, tuple[str, Watched[T]]] = {}

    async def ask(self, addresses: Mapping[str, str]) -> Asked[T]:
        for agent_id in self._watched.keys() - addresses.keys():
            del self._watched[agent_id]
        for agent_id, address in addresses.items():
            # Who is elsewhere now was started again: that it did not answer where it was says nothing any more.
            if agent_id not in self._watched or self._watched[agent_id][0] != address:
                self._watched[agent_id] = address, self._watch(agent_id, address)
        watched = {agent_id: each for agent_id, (_, each) in self._watched.items()}
        await asyncio.gather(*(each.look() for each in watched.values()))
        heard = {agent_id: each for agent_id, each in watched.items() if each.silence is None}
        return Asked(
            answers={agent_id: each.answer.value for agent_id, each in heard.items() if each.answer is not None},
            silent={agent_id: each.silence for agent_id, each in watched.items() if each.silence is not None},
        )

    def _watch(self, agent_id: str, address: str) -> Watched[T]:
        async def ask() -> T:
            async with self._places:
                return await self._put(self._peers.at(agent_id, address))

        # The question has its own time-out; this one is for the turn that it waits for.
        return Watched(ask, self._clock, self._tasks, agent_id, patience_ms=2 * ANSWER_MS)
