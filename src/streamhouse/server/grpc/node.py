"""A node among the others: its port for their calls."""

from __future__ import annotations

from contextlib import suppress

from streamhouse.client.address import Address
from streamhouse.client.peer import Peer, Peers
from streamhouse.metadata.cluster import AgentRow
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.settings import Settings
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.grpc.internal import InternalService
from streamhouse.server.grpc.listener import GrpcListener

_DRAIN_MS = 5_000
_NUDGE_MS = 1_000


class InternalPort:
    def __init__(self, settings: Settings, local: Peer, peers: Peers) -> None:
        """`local` answers for this node."""
        self._settings = settings
        self._listener = GrpcListener(settings, [InternalService(local).handler()])
        self._peers = peers
        self._nudges = TaskGroup("nudges")
        self.port = 0
        self.address = ""

    async def start(self) -> None:
        host, self.port = await self._listener.start(self._settings.host, self._settings.grpc_port)
        self.address = str(Address(host, self.port))

    def nudge(self, agent: AgentRow) -> None:
        """Tell another agent to look at its transfers. If it does not hear, the metadata store tells it, or time."""
        if agent.info.address:
            self._nudges.start(self._nudge(agent), "nudge")

    async def _nudge(self, agent: AgentRow) -> None:
        with suppress(StreamHouseError):
            await self._peers.at(agent.info.agent_id, agent.info.address).nudge_transfers(timeout_ms=_NUDGE_MS)

    async def drain(self) -> None:
        await self._listener.drain(_DRAIN_MS)

    async def close(self) -> None:
        await self._nudges.cancel()
        await self._listener.close()
