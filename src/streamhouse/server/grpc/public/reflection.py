"""The standard reflection service, by which tools like grpcurl learn what there is to call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from functools import partial

import grpc
from grpc_reflection.v1alpha import reflection_pb2 as pb
from grpc_reflection.v1alpha.reflection import aio

from streamhouse.server.grpc.calls import parse
from streamhouse.server.grpc.public.message_limits import check_question
from streamhouse.server.grpc.public.streams import Answers, Streams

SERVICES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""Two names for the same messages: tools of today ask for the first and those of yesterday for the second."""


class ReflectionService:
    def __init__(self, services: Iterable[str], streams: Streams) -> None:
        self._servicer = aio.ReflectionServicer([*services, *SERVICES])
        self._streams = streams

    def handlers(self) -> list[grpc.GenericRpcHandler]:
        method = self._streams.conversing(
            partial(parse, request=pb.ServerReflectionRequest, check=check_question), self._answer
        )
        return [grpc.method_handlers_generic_handler(service, {"ServerReflectionInfo": method}) for service in SERVICES]

    async def _answer(
        self, requests: AsyncIterator[pb.ServerReflectionRequest], answers: Answers[pb.ServerReflectionResponse]
    ) -> None:
        async for answer in self._servicer.ServerReflectionInfo(requests, None):
            await answers.send(answer)
