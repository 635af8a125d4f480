"""A node's HTTP port, from its parts."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, unquote

from streamhouse.broker.adoption import Adoption
from streamhouse.broker.broker import Broker
from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.planning import Planner
from streamhouse.broker.sink_upkeep import SinkUpkeep
from streamhouse.log.engine import LogEngine
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.settings import Settings
from streamhouse.objects.store import ObjectStore
from streamhouse.server.http.calls import HttpCalls
from streamhouse.server.http.context import PlanningContext
from streamhouse.server.http.listener import HttpListener
from streamhouse.server.http.object_urls import ObjectUrls
from streamhouse.server.http.port import bind_http_port
from streamhouse.server.http.routes import all_routes
from streamhouse.wire.http.planning import ObjectsLocation


class PlanningPort:
    """It is bound when made, and open when started."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._port = bind_http_port(settings)
        self._listener: HttpListener | None = None
        self._sinks: SinkUpkeep | None = None

    @property
    def address(self) -> str:
        return self._port.address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    async def start(
        self,
        broker: Broker,
        forwarder: Forwarder,
        engine: LogEngine,
        metadata: MetadataStore,
        objects: ObjectStore,
        objects_url: str,
    ) -> None:
        adoption = Adoption(
            sinks=metadata, objects=objects, topics=broker.topics, leaders=forwarder, clock=broker.clock
        )
        context = PlanningContext(
            broker=broker,
            forwarder=forwarder,
            planner=Planner(
                topics=broker.topics,
                forwarder=forwarder,
                reader=engine.reader,
                committed_logs=engine.committed_logs,
                store=metadata,
            ),
            adoption=adoption,
            objects=objects,
            metadata=metadata,
            location=_location(self._settings, objects_url),
            calls=HttpCalls(self._settings),
            urls=ObjectUrls(objects),
        )
        self._listener = HttpListener(self._settings, all_routes(context))
        self._sinks = SinkUpkeep(
            adoption=adoption,
            sinks=metadata,
            objects=objects,
            clock=broker.clock,
            garbage_grace_ms=self._settings.garbage_grace,
        )
        self._sinks.start()
        await self._listener.start(self._port)

    async def drain(self) -> None:
        if self._listener is not None:
            await self._listener.drain()
        if self._sinks is not None:
            await self._sinks.close()

    async def close(self) -> None:
        """At once."""
        if self._listener is not None:
            await self._listener.close()
        if self._sinks is not None:
            await self._sinks.close()
        self._port.socket.close()


def _location(settings: Settings, objects_url: str) -> ObjectsLocation:
    """A directory is named from the root on: whoever is told has another working directory."""
    scheme, _, rest = objects_url.partition(":")
    if scheme == "file":
        return ObjectsLocation(url=f"file://{quote(str(Path(unquote(rest.removeprefix('//'))).absolute()))}")
    if scheme == "s3":
        return ObjectsLocation(
            url=objects_url,
            endpoint=settings.s3_endpoint,
            region=settings.s3_region or "us-east-1",
            path_style=settings.s3_path_style,
        )
    return ObjectsLocation(url=objects_url)
