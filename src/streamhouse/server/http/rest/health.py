"""Whether this node is alive, and whether it is ready: for those who start nodes and send clients to them."""

from __future__ import annotations

import asyncio

from streamhouse.broker.broker import NOT_A_NODE
from streamhouse.core.placement.liveness import is_heard_of
from streamhouse.model.errors import Unavailable
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.rest.registry import Call, Rest
from streamhouse.wire.http.rest.cluster import NodeHealth

TAG = "health"
METADATA_PATIENCE_S = 5.0
_OK = NodeHealth(status="ok")


def add_health(rest: Rest, context: DoorContext) -> None:
    health = _HealthRoutes(context)
    rest.route(
        "GET",
        "/health/live",
        health.live,
        summary="Whether this process answers at all",
        tag=TAG,
        answer=NodeHealth,
        answer_example=_OK,
    )
    rest.route(
        "GET",
        "/health/ready",
        health.ready,
        summary="Whether clients may be sent to this node",
        tag=TAG,
        answer=NodeHealth,
        answer_example=_OK,
        errors=(Unavailable,),
    )


class _HealthRoutes:
    def __init__(self, context: DoorContext) -> None:
        self._broker = context.broker
        self._metadata = context.metadata

    async def live(self, _: Call) -> NodeHealth:
        return _OK

    async def ready(self, _: Call) -> NodeHealth:
        """What the node keeps on its own disk is there, and the metadata store answers and counts this agent among the
        living; without one of its own, any agent."""
        if self._broker.storage_problem is not None:
            raise self._broker.storage_problem
        try:
            async with asyncio.timeout(METADATA_PATIENCE_S):
                agents = await self._metadata.list_agents()
        except TimeoutError:
            raise Unavailable("the metadata store does not answer") from None
        liveness_ms = self._broker.settings.liveness
        live = [agent for agent in agents if is_heard_of(agent, liveness_ms=liveness_ms) and not agent.is_draining]
        identity = self._broker.identity
        if identity.node_id == NOT_A_NODE:
            if not live:
                raise Unavailable("there is no live agent", hint="start one with `streamhouse agent`")
        elif all(agent.info.agent_id != identity.agent_id for agent in live):
            raise Unavailable(f"agent {identity.agent_id} is draining, or was silent for too long")
        return _OK
