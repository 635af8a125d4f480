"""An operator's orders over REST: which agent is to give away what it leads, which is to lead a partition.

Whoever reaches the port may give them, as with all else there; what throws acknowledged records away is not among
them, and stays with who has the database."""

from __future__ import annotations

from msgspec.structs import asdict

from streamhouse.cluster.orders import order_drain, order_move
from streamhouse.cluster.state import ClusterState, name_of, read_cluster_state
from streamhouse.model.errors import InvalidInput, MetadataUnavailable, NotFound
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.cluster_answers import (
    AGENT_EXAMPLE,
    PLACEMENT_EXAMPLE,
    agent_answer,
    placement_answer,
)
from streamhouse.server.http.rest.paging import page
from streamhouse.server.http.rest.positions import after_name
from streamhouse.server.http.rest.registry import API, Call, Rest
from streamhouse.server.http.rest.watch import ClusterWatch
from streamhouse.wire.http.rest import cluster as api

TAG = "cluster"


def add_orders(rest: Rest, context: DoorContext, watch: ClusterWatch) -> None:
    orders = _OrderRoutes(context, watch)
    pin = f"{API}/topics/{{topic}}/partitions/{{partition}}/pin"
    rest.route(
        "GET",
        f"{API}/placements",
        orders.placements,
        summary="List where the partitions of all topics are",
        tag=TAG,
        query=api.PlacementQuery,
        answer=api.PlacementsAnswer,
        answer_example=api.PlacementsAnswer(placements=[PLACEMENT_EXAMPLE]),
        errors=(MetadataUnavailable, NotFound),
    )
    rest.route(
        "POST",
        f"{API}/agents/{{agent_id}}/drain",
        orders.drain,
        summary="Make an agent give away what it leads",
        description="Partition by partition, while clients go on: look at the list of agents until it leads nothing. "
        "It leads nothing then until it is started again. Where no other agent of its agent group is alive it keeps "
        "what it leads, and `note` says so.",
        tag=TAG,
        answer=api.DrainAnswer,
        answer_example=api.DrainAnswer(**asdict(AGENT_EXAMPLE)),
        errors=(InvalidInput, NotFound),
    )
    rest.route(
        "PUT",
        pin,
        orders.pin,
        summary="Say which agent is to lead a partition",
        description="Its leader hands it over soon, and it stays with that agent while it is alive, whatever the ring "
        "says. The answer is how it is now: ask for the placements until the agent leads it.",
        tag=TAG,
        body=api.Pin,
        body_example=api.Pin(agent_id="agent-2"),
        answer=api.PlacementAnswer,
        answer_example=PLACEMENT_EXAMPLE,
        errors=(InvalidInput, NotFound),
    )
    rest.route(
        "DELETE",
        pin,
        orders.unpin,
        summary="Let the ring say again who leads a partition",
        tag=TAG,
        answer=api.PlacementAnswer,
        answer_example=PLACEMENT_EXAMPLE,
        errors=(NotFound,),
    )


class _OrderRoutes:
    def __init__(self, context: DoorContext, watch: ClusterWatch) -> None:
        self._watch = watch
        self._metadata = context.metadata
        self._liveness_ms = context.broker.settings.liveness

    async def placements(self, call: Call) -> api.PlacementsAnswer:
        asked: api.PlacementQuery = call.query
        after = after_name(asked.after)
        state = await self._watch.state_now()
        among = state.of_topic(asked.topic) if asked.topic else state.placements
        found = (each for each in among if (each.topic, each.partition.partition) > after)
        placements, following = page(found, asked.limit, name_of)
        return api.PlacementsAnswer(placements=[placement_answer(each) for each in placements], next=following)

    async def drain(self, call: Call) -> api.DrainAnswer:
        agent_id = call.path["agent_id"]
        note = await order_drain(self._metadata, agent_id, self._liveness_ms)
        state = await self._state()
        return api.DrainAnswer(note=note, **asdict(agent_answer(state.agent(agent_id), state)))

    async def pin(self, call: Call) -> api.PlacementAnswer:
        wanted: api.Pin = call.body
        return await self._move(call, wanted.agent_id)

    async def unpin(self, call: Call) -> api.PlacementAnswer:
        return await self._move(call, None)

    async def _move(self, call: Call, agent_id: str | None) -> api.PlacementAnswer:
        topic, number = call.path["topic"], call.number("partition")
        await order_move(self._metadata, topic, number, agent_id, self._liveness_ms)
        return placement_answer((await self._state()).partition(topic, number))

    async def _state(self) -> ClusterState:
        return await read_cluster_state(self._metadata, self._liveness_ms)
