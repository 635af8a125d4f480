"""A node among the others: its port for their calls, and its own calls to them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from uuid import UUID

from streamhouse.broker.broker import Broker
from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.local_peer import LocalPeer
from streamhouse.client.address import Address
from streamhouse.client.internal import PeerClient
from streamhouse.client.peer import Peers
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.cluster import AgentRow
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.server.grpc.internal import InternalService
from streamhouse.server.grpc.listener import ENVELOPE_BYTES, GrpcListener

_DRAIN_MS = 5_000
_NUDGE_MS = 1_000


class InternalPort:
    def __init__(
        self,
        broker: Broker,
        *,
        flush: Callable[[PartitionLeader], Awaitable[None]],
        look_again: Callable[[], None],
        refresh_routes: Callable[[], Awaitable[None]],
    ) -> None:
        self._broker = broker
        settings = broker.settings
        local = LocalPeer(broker, flush=flush, nudge_transfers=look_again)
        self._listener = GrpcListener(settings, [InternalService(local).handler()])
        self._peers = Peers(
            lambda address: PeerClient(address, max_message_bytes=settings.max_request_bytes + ENVELOPE_BYTES)
        )
        self.forwarder = Forwarder(
            agent_id=broker.identity.agent_id,
            local=local,
            peers=self._peers,
            leader_address=self._leader_address,
            refresh_routes=refresh_routes,
            clock=broker.clock,
        )
        self._nudges = TaskGroup("nudges")
        self.port = 0
        self.address = ""

    async def start(self) -> None:
        settings = self._broker.settings
        host, self.port = await self._listener.start(settings.host, settings.grpc_port)
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
        await self._peers.close()

    def _leader_address(self, topic_id: UUID, partition: int) -> tuple[str, str] | None:
        return self._broker.nodes.peer_that_leads(TopicPartition(topic_id, partition))
