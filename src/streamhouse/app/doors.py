"""The ways into a node besides Kafka's, which every node has.

What a door needs is imported when it is opened, for that takes longer than to start a node."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import TYPE_CHECKING

from streamhouse.app.options import objects_url
from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.local_peer import LocalPeer
from streamhouse.client.peer import Peers
from streamhouse.metadata.cluster import AgentRow
from streamhouse.model.settings import Settings
from streamhouse.objects.store import ObjectStore
from streamhouse.server.doors import DoorContext
from streamhouse.server.tcp import Listener

if TYPE_CHECKING:
    from streamhouse.server.flume.listener import FlumeListener, FlumePort
    from streamhouse.server.grpc.node import GrpcPort
    from streamhouse.server.http.node import HttpDoor


class Door(Enum):
    HTTP = "http"
    GRPC = "grpc"
    FLUME = "flume"


class Doors:
    """Bound, then opened, then drained or closed; `close` may always be called."""

    def __init__(self, settings: Settings, opens: Collection[Door]) -> None:
        self._settings = settings
        self._opens = frozenset(opens)
        self._flume_port: FlumePort | None = None
        self.http: HttpDoor | None = None
        self.grpc: GrpcPort | None = None
        self.flume: FlumeListener | None = None

    def bind(self) -> None:
        """So that a port which is taken is known before anything is led."""
        if Door.HTTP in self._opens:
            from streamhouse.console.pages import console_routes
            from streamhouse.server.http.node import HttpDoor

            self.http = HttpDoor(self._settings, console_routes())
        if Door.FLUME in self._opens:
            from streamhouse.server.flume.listener import bind_flume_port

            self._flume_port = bind_flume_port(self._settings)

    async def listen_for_peers(self, context: DoorContext, local: LocalPeer, peers: Peers, *, is_shared: bool) -> None:
        """gRPC, which is the door of other nodes too, and is there before the node registers: they are told where."""
        if Door.GRPC not in self._opens and not is_shared:
            return
        from streamhouse.server.grpc.node import GrpcPort

        self.grpc = GrpcPort(
            self._settings,
            local=local,
            peers=peers,
            context=context.at("grpc") if Door.GRPC in self._opens else None,
            is_shared=is_shared,
        )
        await self.grpc.start()

    async def open(self, context: DoorContext, forwarder: Forwarder, objects: ObjectStore) -> None:
        """To clients."""
        if self.http is not None:
            await self.http.start(context.at("http"), forwarder, objects, objects_url(self._settings))
        if self.grpc is not None:
            self.grpc.begin_serving()
        if self._flume_port is not None:
            from streamhouse.server.flume.listener import FlumeListener

            self.flume = FlumeListener(context.at("flume"))
            await self.flume.start(self._flume_port)

    def nudge(self, agent: AgentRow) -> None:
        if self.grpc is not None:
            self.grpc.nudge(agent)

    def told_http(self, host: str) -> str:
        """Where commands are told to call the HTTP port, on a node that clients know by this name; "" if it is not
        open."""
        if self.http is None:
            return ""
        from streamhouse.server.http.port import advertised_http

        return advertised_http(self._settings, host, self.http.port)

    @property
    def addresses(self) -> dict[str, str]:
        doors = {"http": self.http, "grpc": self.grpc, "flume": self.flume}
        return {name: door.address for name, door in doors.items() if door is not None}

    @property
    def traffic(self) -> dict[str, Listener]:
        """Those whose connections are our own to count."""
        return {} if self.flume is None else {"flume": self.flume.traffic}

    async def drain(self) -> None:
        for door in (self.http, self.grpc, self.flume):
            if door is not None:
                await door.drain()

    async def close(self) -> None:
        for door in (self.http, self.grpc, self.flume):
            if door is not None:
                await door.close()
        if self._flume_port is not None:
            self._flume_port.socket.close()
