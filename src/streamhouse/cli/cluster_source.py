"""What commands ask of a cluster and order of it, through one of its nodes or in its database: the same either way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

import uvloop

from streamhouse.cli.metadata_store import opened_metadata
from streamhouse.cli.suggestion import no_such_topic
from streamhouse.cli.where import Place
from streamhouse.client.rest import RestClient
from streamhouse.cluster.orders import order_drain, order_move
from streamhouse.cluster.state import ClusterState, read_cluster_state
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import NotFound
from streamhouse.server.http.rest.cluster_answers import agent_answer, placement_answer, transfer_answer
from streamhouse.wire.http.rest.cluster import AgentAnswer, PlacementAnswer, TransferAnswer

Result = TypeVar("Result")
Answer = TypeVar("Answer")


class ClusterSource(Protocol):
    async def agents(self) -> Sequence[AgentAnswer]:
        """By id."""

    async def placements(self, topic: str | None = None) -> Sequence[PlacementAnswer]:
        """Of all topics, or of one; NotFound if it is not there."""

    async def transfers(self) -> Sequence[TransferAnswer]:
        """The latest first."""

    async def drain(self, agent_id: str) -> None:
        """It is to give away what it leads."""

    async def move(self, topic: str, partition: int, agent_id: str | None) -> None:
        """The agent is to lead it; None: whoever the ring says."""


def with_cluster(place: Place, work: Callable[[ClusterSource], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        async with _opened(place) as source:
            return await work(source)

    result: Result = uvloop.run(run())
    return result


async def placements_of(source: ClusterSource, topic: str) -> Sequence[PlacementAnswer]:
    """NotFound says which topic may have been meant."""
    try:
        return await source.placements(topic)
    except NotFound:
        raise no_such_topic(topic, {each.topic for each in await source.placements()}) from None


async def placement_at(source: ClusterSource, topic: str, partition: int) -> PlacementAnswer:
    placements = await placements_of(source, topic)
    for placement in placements:
        if placement.partition == partition:
            return placement
    raise NotFound(f"topic {topic!r} has no partition {partition}", hint=f"they are 0 to {len(placements) - 1}")


@asynccontextmanager
async def _opened(place: Place) -> AsyncIterator[ClusterSource]:
    if place.endpoint:
        with RestClient(place.endpoint) as client:
            yield _Node(client)
    else:
        async with opened_metadata(place.settings) as store:
            yield _Database(store, place.settings.liveness)


class _Node:
    def __init__(self, client: RestClient) -> None:
        self._client = client

    async def agents(self) -> Sequence[AgentAnswer]:
        return await asyncio.to_thread(self._client.agents)

    async def placements(self, topic: str | None = None) -> Sequence[PlacementAnswer]:
        return await asyncio.to_thread(self._client.placements, topic)

    async def transfers(self) -> Sequence[TransferAnswer]:
        return await asyncio.to_thread(self._client.transfers)

    async def drain(self, agent_id: str) -> None:
        await asyncio.to_thread(self._client.drain, agent_id)

    async def move(self, topic: str, partition: int, agent_id: str | None) -> None:
        if agent_id is None:
            await asyncio.to_thread(self._client.unpin, topic, partition)
        else:
            await asyncio.to_thread(self._client.pin, topic, partition, agent_id)


class _Database:
    def __init__(self, store: MetadataStore, liveness_ms: int) -> None:
        self._store = store
        self._liveness_ms = liveness_ms

    async def agents(self) -> Sequence[AgentAnswer]:
        state = await self._state()
        return [agent_answer(agent, state) for agent in state.agents]

    async def placements(self, topic: str | None = None) -> Sequence[PlacementAnswer]:
        state = await self._state()
        return [placement_answer(each) for each in (state.placements if topic is None else state.of_topic(topic))]

    async def transfers(self) -> Sequence[TransferAnswer]:
        return [transfer_answer(transfer) for transfer in await self._store.list_transfers()]

    async def drain(self, agent_id: str) -> None:
        await order_drain(self._store, agent_id, self._liveness_ms)

    async def move(self, topic: str, partition: int, agent_id: str | None) -> None:
        await order_move(self._store, topic, partition, agent_id, self._liveness_ms)

    async def _state(self) -> ClusterState:
        return await read_cluster_state(self._store, self._liveness_ms)
