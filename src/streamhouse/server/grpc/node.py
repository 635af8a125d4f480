"""A node's gRPC port: for clients, and where metadata is shared for the other nodes too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import grpc

from streamhouse.client.address import Address
from streamhouse.client.peer import Peer, Peers
from streamhouse.metadata.cluster import AgentRow
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.settings import Settings
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.doors import DoorContext
from streamhouse.server.grpc.internal import InternalService
from streamhouse.server.grpc.listener import MAX_CALLS, MAX_CALLS_OF_CONNECTION, GrpcListener
from streamhouse.server.grpc.public.services import PublicServices

_DRAIN_MS = 5_000
_NUDGE_MS = 1_000


class GrpcPort:
    def __init__(
        self, settings: Settings, *, local: Peer, peers: Peers, context: DoorContext | None, is_shared: bool
    ) -> None:
        """`local` answers for this node, to others if it `is_shared`; with a `context` there are services for clients,
        who are told that they are served from `begin_serving` on."""
        self._settings = settings
        self._public = None if context is None else PublicServices(context)
        services: Sequence[grpc.GenericRpcHandler] = [
            *([InternalService(local).handler()] if is_shared else []),
            *([] if self._public is None else self._public.handlers),
        ]
        of_connection = MAX_CALLS if is_shared else MAX_CALLS_OF_CONNECTION
        self._listener = GrpcListener(settings, services, max_calls_of_connection=of_connection)
        self._peers = peers
        self._nudges = TaskGroup("nudges")
        self.port = 0
        self.address = ""

    async def start(self) -> None:
        host, self.port = await self._listener.start(self._settings.host, self._settings.grpc_port)
        self.address = str(Address(host, self.port))

    def begin_serving(self) -> None:
        if self._public is not None:
            self._public.serving(True)

    def nudge(self, agent: AgentRow) -> None:
        """Tell another agent to look at its transfers. If it does not hear, the metadata store tells it, or time."""
        if agent.info.address:
            self._nudges.start(self._nudge(agent), "nudge")

    async def _nudge(self, agent: AgentRow) -> None:
        with suppress(StreamHouseError):
            await self._peers.at(agent.info.agent_id, agent.info.address).nudge_transfers(timeout_ms=_NUDGE_MS)

    async def drain(self) -> None:
        if self._public is not None:
            self._public.serving(False)
        await self._listener.drain(_DRAIN_MS)
        await self.close()

    async def close(self) -> None:
        await self._nudges.cancel()
        await self._listener.close()
        if self._public is not None:
            await self._public.close()
