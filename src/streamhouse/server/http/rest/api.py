"""The REST API of a node: all its operations, and what of it must be ended with the node."""

from __future__ import annotations

from starlette.routing import BaseRoute

from streamhouse.objects.store import ObjectStore
from streamhouse.server.doors import DoorContext
from streamhouse.server.http.calls import HttpCalls
from streamhouse.server.http.rest.admin import RestAdmin
from streamhouse.server.http.rest.description import add_description
from streamhouse.server.http.rest.download import add_download
from streamhouse.server.http.rest.event_stream import add_event_stream
from streamhouse.server.http.rest.following import Following
from streamhouse.server.http.rest.messages import add_messages
from streamhouse.server.http.rest.producing import add_producing
from streamhouse.server.http.rest.reading import add_reading
from streamhouse.server.http.rest.registry import Rest
from streamhouse.server.http.rest.socket import add_socket
from streamhouse.server.http.rest.stored_segments import StoredSegments
from streamhouse.server.http.rest.verification import Verifying
from streamhouse.server.http.rest.waiting import Waiting


class RestApi:
    def __init__(self, context: DoorContext, calls: HttpCalls, objects: ObjectStore) -> None:
        rest = Rest(calls)
        self._waiting = Waiting()
        following = Following(context.records, self._waiting)
        # Paths are tried in this order, and records are what comes most often.
        add_producing(rest, context)
        add_reading(rest, context, self._waiting)
        add_messages(rest, context)
        add_download(rest, context, self._waiting)
        add_event_stream(rest, following)
        add_socket(rest, following)
        add_description(rest)
        self._admin = RestAdmin(rest, context)
        self._verifying = Verifying(rest, context, objects)
        StoredSegments(rest, objects)
        self.operations = rest.operations
        self.routes: list[BaseRoute] = rest.routes()

    def start(self) -> None:
        """What goes on whether anybody asks or not."""
        self._admin.start()

    async def end_memberships(self) -> None:
        await self._admin.end_memberships()

    def drain(self) -> None:
        """Let those who wait for records finish with what there is, as the node ends."""
        self._waiting.end()
        self._verifying.end()

    async def close(self) -> None:
        """End what outlives a request."""
        self.drain()
        await self._admin.close()
