"""An agent that serves Kafka connections: the real port, sessions and handlers on sockets that are a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sim.cluster.agent import SimulatedAgent
from sim.cluster.loop import Process, VirtualLoop
from sim.cluster.node import SETTINGS, Node
from streamhouse.broker.broker import Broker, Identity
from streamhouse.broker.measures import DoorMeasures
from streamhouse.broker.nodes import Nodes
from streamhouse.broker.topics import Topics
from streamhouse.model.buffer import Buffer
from streamhouse.server.kafka.context import Endpoint
from streamhouse.server.kafka.listener import KafkaListener
from streamhouse.server.kafka.routing import Router
from streamhouse.server.tcp import Connection


class Caller(Protocol):
    """The client's end of a connection."""

    def received(self, data: bytes) -> None: ...

    def closed(self) -> None: ...


class DoorNode(Node):
    """What `app.Node` adds for Kafka clients that only produce and ask who leads what."""

    def __init__(self, *, agent_id: str, **parts: Any) -> None:
        super().__init__(agent_id=agent_id, **parts)
        self._catalog = Topics(
            store=self.database,  # type: ignore[arg-type]
            engine=self.engine,
            node_defaults={},
            default_partitions=1,
            place=self._assigner.look_now,
        )
        broker = Broker(
            settings=SETTINGS,
            identity=Identity(cluster_id="simulated", node_id=int(agent_id[-1]), agent_id=agent_id),
            clock=parts["clock"],
            metadata=self.database,  # type: ignore[arg-type]
            engine=self.engine,
            topics=self._catalog,
            groups=None,  # type: ignore[arg-type]
            nodes=Nodes(self._view),
            configs=None,  # type: ignore[arg-type]
        )
        self.kafka = KafkaListener(broker, DoorMeasures())
        self.kafka._router = Router(
            broker,
            Endpoint(agent_id, 1),
            self.kafka._largest_reply_bytes,
            self.kafka.measures,
            self.kafka._reading,
        )

    async def start(self) -> None:
        await super().start()
        self._catalog.opened(self._topics)
        self.kafka.traffic._watch()

    async def drain(self) -> None:
        await super().drain()
        await self.kafka.close()


class DoorAgent(SimulatedAgent):
    """`ends`: the agent's side of every connection; whoever crashes leaves none open. `resumed_at`: when it last had
    been paused, and so could not keep to any time."""

    node_type = DoorNode

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ends: dict[ServerEnd, None] = {}
        self.resumed_at = 0.0

    def resume(self) -> None:
        self.resumed_at = self.loop.time()
        super().resume()

    def crash(self) -> None:
        super().crash()
        for end in list(self.ends):
            end.cut()

    def accept(self, caller: Caller) -> ServerEnd | None:
        """A connection, if anybody listens."""
        if self.process is None or not self.is_serving:
            return None
        assert isinstance(self.node, DoorNode)
        end = ServerEnd(self, self.process, caller)
        self.ends[end] = None
        self.process.context.copy().run(end.open, self.node.kafka)
        return end


class ServerEnd:
    """A socket as asyncio's transport: bytes take their time and keep their order, both ways."""

    def __init__(self, agent: DoorAgent, process: Process, caller: Caller) -> None:
        self._agent = agent
        self._loop: VirtualLoop = agent.loop
        self._process = process
        self._caller = caller
        self._connection: Connection
        self._unread = b""
        self._is_open = True
        self._is_reading = True
        self._last_arrival = {"here": 0.0, "there": 0.0}

    def open(self, kafka: KafkaListener) -> None:
        self._connection = Connection(kafka.traffic)
        self._connection.connection_made(self)  # type: ignore[arg-type]

    # --- as the client sees it ---

    def send(self, data: bytes) -> None:
        self._arrive("here", self._received, data)

    def cut(self) -> None:
        """It ends without warning; what is on its way arrives or does not."""
        if self._is_open:
            self.abort()

    # --- as the node sees it ---

    def writelines(self, buffers: list[Buffer]) -> None:
        if self._is_open:
            self._arrive("there", self._caller.received, b"".join(buffers))

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True
        self._loop.call_soon(self._feed, context=self._process.context)

    def is_closing(self) -> bool:
        return not self._is_open

    def close(self) -> None:
        self.abort()

    def abort(self) -> None:
        if self._is_open:
            self._is_open = False
            self._agent.ends.pop(self, None)
            self._loop.call_soon(self._connection.connection_lost, None, context=self._process.context)
            self._arrive("there", self._caller.closed)

    def set_write_buffer_limits(self, high: int, low: int) -> None:
        return

    def get_extra_info(self, name: str) -> tuple[str, int]:
        return ("client", 1)

    # --- between them ---

    def _arrive(self, where: str, callback: Callable[..., None], *args: object) -> None:
        at = max(self._last_arrival[where], self._loop.time() + self._agent.random.random() * 0.003)
        self._last_arrival[where] = at
        context = self._process.context if where == "here" else self._loop.nobody
        self._loop.call_at(at, callback, *args, context=context)

    def _received(self, data: bytes) -> None:
        self._unread += data
        self._feed()

    def _feed(self) -> None:
        while self._unread and self._is_open and self._is_reading:
            buffer = self._connection.get_buffer(-1)
            part, self._unread = self._unread[: len(buffer)], self._unread[len(buffer) :]
            buffer[: len(part)] = part
            self._connection.buffer_updated(len(part))
