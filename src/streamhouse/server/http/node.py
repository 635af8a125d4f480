"""A node's HTTP port, from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from starlette.routing import BaseRoute

from streamhouse.broker.adoption import Adoption
from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.sink_upkeep import SinkUpkeep
from streamhouse.model.settings import Settings
from streamhouse.objects.store import ObjectStore
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.calls import HttpCalls
from streamhouse.server.http.context import PlanningContext
from streamhouse.server.http.listener import HttpListener
from streamhouse.server.http.object_urls import ObjectUrls
from streamhouse.server.http.port import bind_http_port
from streamhouse.server.http.rest.api import RestApi
from streamhouse.server.http.routes import planning_routes
from streamhouse.wire.http.planning import ObjectsLocation


class HttpDoor:
    """The REST API and the planning API. It is bound when made, and open when started."""

    def __init__(self, settings: Settings, pages: Sequence[BaseRoute] = ()) -> None:
        """`pages` are for people, beside what is for programs."""
        self._settings = settings
        self._pages = pages
        self._port = bind_http_port(settings)
        self._listener: HttpListener | None = None
        self._sinks: SinkUpkeep | None = None
        self._rest: RestApi | None = None

    @property
    def address(self) -> str:
        return self._port.address

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    async def start(self, context: DoorContext, forwarder: Forwarder, objects: ObjectStore, objects_url: str) -> None:
        broker = context.broker
        adoption = Adoption(
            sinks=context.metadata, objects=objects, topics=broker.topics, leaders=forwarder, clock=broker.clock
        )
        calls = HttpCalls(self._settings)
        planning = PlanningContext(
            broker=broker,
            forwarder=forwarder,
            planner=context.planner,
            adoption=adoption,
            objects=objects,
            metadata=context.metadata,
            location=_location(self._settings, objects_url),
            calls=calls,
            urls=ObjectUrls(objects),
        )
        self._rest = RestApi(context, calls, objects)
        self._listener = HttpListener(
            self._settings,
            [*self._rest.routes, *planning_routes(planning), *self._pages],
            advertised=lambda: broker.nodes.hosts,
        )
        self._sinks = SinkUpkeep(
            adoption=adoption,
            sinks=context.metadata,
            objects=objects,
            clock=broker.clock,
            garbage_grace_ms=self._settings.garbage_grace,
        )
        self._sinks.start()
        self._rest.start()
        await self._listener.start(self._port)

    async def end_memberships(self) -> None:
        """Of groups, those that callers of this port have (a fault hook)."""
        if self._rest is not None:
            await self._rest.end_memberships()

    async def drain(self) -> None:
        if self._rest is not None:
            self._rest.drain()
        if self._listener is not None:
            await self._listener.drain()
        await self._end()

    async def close(self) -> None:
        """At once."""
        if self._listener is not None:
            await self._listener.close()
        await self._end()
        self._port.socket.close()

    async def _end(self) -> None:
        if self._sinks is not None:
            await self._sinks.close()
        if self._rest is not None:
            await self._rest.close()


def _without_user(url: str) -> str:
    """Who is told where the store is, is not told by which keys this node reaches it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _location(settings: Settings, objects_url: str) -> ObjectsLocation:
    """A directory is named from the root on: whoever is told has another working directory."""
    scheme, _, rest = objects_url.partition(":")
    if scheme == "file":
        return ObjectsLocation(url=f"file://{quote(str(Path(unquote(rest.removeprefix('//'))).absolute()))}")
    if scheme == "s3":
        return ObjectsLocation(
            url=objects_url,
            endpoint=_without_user(settings.s3_endpoint),
            region=settings.s3_region or "us-east-1",
            path_style=settings.s3_path_style,
        )
    return ObjectsLocation(url=objects_url)
