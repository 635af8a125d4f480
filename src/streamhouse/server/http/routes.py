"""All routes of the planning API."""

from __future__ import annotations

from starlette.requests import Request
from starlette.routing import Route

from streamhouse.server.http.context import PlanningContext
from streamhouse.server.http.planning_objects import object_routes
from streamhouse.server.http.planning_reads import read_routes
from streamhouse.server.http.planning_segments import segment_routes
from streamhouse.server.http.planning_sinks import sink_routes


def planning_routes(context: PlanningContext) -> list[Route]:
    return [
        context.calls.get("/health", _health),
        *read_routes(context),
        *object_routes(context),
        *sink_routes(context),
        *segment_routes(context),
    ]


async def _health(_: Request) -> dict[str, str]:
    return {"status": "ok"}
