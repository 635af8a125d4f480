"""The standard service `grpc.health.v1.Health`: whether this node serves clients now."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import grpc
from grpc_health.v1 import health_pb2 as pb

from streamhouse.model.errors import NotFound
from streamhouse.server.grpc.calls import unary
from streamhouse.server.grpc.public.message_limits import check_question
from streamhouse.server.grpc.public.streams import Answers, Streams

SERVICE = pb.DESCRIPTOR.services_by_name["Health"].full_name
_WHOLE_NODE = ""


class HealthService:
    """All services of a node are there together or not at all, as the node starts and stops."""

    def __init__(self, services: Iterable[str], streams: Streams) -> None:
        self._services = {_WHOLE_NODE, *services}
        self._streams = streams
        self._is_serving = False
        self._changed = asyncio.Event()

    def set(self, is_serving: bool) -> None:
        self._is_serving = is_serving
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def handler(self) -> grpc.GenericRpcHandler:
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Check": unary(pb.HealthCheckRequest, self._check, check=check_question),
                "Watch": self._streams.answering(pb.HealthCheckRequest, self._watch),
            },
        )

    async def _check(self, request: pb.HealthCheckRequest, _: int) -> pb.HealthCheckResponse:
        if request.service not in self._services:
            raise NotFound(f"there is no service {request.service[:200]!r}")
        return self._status()

    async def _watch(self, request: pb.HealthCheckRequest, answers: Answers[pb.HealthCheckResponse]) -> None:
        """A service that is not there may come: whoever watches it is told so and waits, as the standard has it."""
        is_known = request.service in self._services
        while True:
            changed = self._changed
            unknown = pb.HealthCheckResponse(status=pb.HealthCheckResponse.SERVICE_UNKNOWN)
            await answers.send(self._status() if is_known else unknown)
            await changed.wait()

    def _status(self) -> pb.HealthCheckResponse:
        serving, not_serving = pb.HealthCheckResponse.SERVING, pb.HealthCheckResponse.NOT_SERVING
        return pb.HealthCheckResponse(status=serving if self._is_serving else not_serving)
