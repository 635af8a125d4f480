"""What the routes of the planning API have at hand."""

from __future__ import annotations

from dataclasses import dataclass

from streamhouse.broker.adoption import Adoption
from streamhouse.broker.broker import Broker
from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.planning import Planner
from streamhouse.metadata.store import MetadataStore
from streamhouse.objects.store import ObjectStore
from streamhouse.server.http.calls import HttpCalls
from streamhouse.server.http.object_urls import ObjectUrls
from streamhouse.wire.http.planning import ObjectsLocation


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanningContext:
    """`calls` makes routes, `urls` lets a caller read and write objects without keys to the object store."""

    broker: Broker
    forwarder: Forwarder
    planner: Planner
    adoption: Adoption
    objects: ObjectStore
    metadata: MetadataStore
    location: ObjectsLocation
    calls: HttpCalls
    urls: ObjectUrls
