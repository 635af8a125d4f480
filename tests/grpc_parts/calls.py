"""The public gRPC API as a client calls it that knows no more than the proto file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import message_factory
from google.protobuf.message import Message

from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb
from streamhouse.wire.grpc.error_kinds import ERROR_KIND_KEY

PATIENCE_S = 60


class Api:
    """`await api("Topics.GetTopic", pb.GetTopicRequest(name="t"))`, and the same for streams."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel

    async def __call__(self, method: str, request: Message, *, timeout_s: float = PATIENCE_S) -> Any:
        path, answer = _method(method)
        return answer.FromString(await self.channel.unary_unary(path)(request.SerializeToString(), timeout=timeout_s))

    def listen(self, method: str, request: Message, *, timeout_s: float | None = PATIENCE_S) -> Any:
        """A call that answers with a stream; without a time-out it may go on for ever."""
        path, answer = _method(method)
        ask = self.channel.unary_stream(path, response_deserializer=answer.FromString)
        return ask(request.SerializeToString(), timeout=timeout_s)

    def converse(self, method: str) -> Any:
        path, answer = _method(method)
        ask = self.channel.stream_stream(
            path,
            request_serializer=lambda request: request.SerializeToString(),
            response_deserializer=answer.FromString,
        )
        return ask(timeout=PATIENCE_S)

    async def refusal(self, method: str, request: Message, *, timeout_s: float = PATIENCE_S) -> tuple[str, str]:
        """The status and the kind of error that a call ends with."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self(method, request, timeout_s=timeout_s)
        return status_of(caught.value)

    async def create_topic(self, name: str, partitions: int = 1, **config: str) -> None:
        renamed = {key.replace("_", "."): value for key, value in config.items()}
        await self("Topics.CreateTopic", pb.CreateTopicRequest(name=name, partition_count=partitions, config=renamed))

    async def produce(self, topic: str, values: Iterable[bytes], partition: int = 0) -> pb.ProduceResponse:
        records = [pb.NewRecord(value=value, partition=partition) for value in values]
        answer = await self("Records.Produce", pb.ProduceRequest(topic=topic, records=records))
        assert isinstance(answer, pb.ProduceResponse)
        return answer

    async def read_all(self, topic: str, **options: Any) -> list[tuple[int, pb.Record]]:
        """All records that a topic has now, with their partitions."""
        request = pb.ConsumeRequest(topic=topic, until_end=True, **options)
        return [
            (answer.partition, record)
            async for answer in self.listen("Records.Consume", request)
            for record in answer.records
        ]


def api_of(broker: Broker, runner: asyncio.Runner) -> Iterator[Api]:
    """For a fixture: the API on the test's own event loop."""
    connection = connected(broker.grpc_address)
    yield runner.run(connection.__aenter__())
    runner.run(connection.__aexit__(None, None, None))


@asynccontextmanager
async def connected(address: str) -> AsyncIterator[Api]:
    async with grpc.aio.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        yield Api(channel)


def status_of(problem: grpc.aio.AioRpcError) -> tuple[str, str]:
    return problem.code().name, str(dict(problem.trailing_metadata() or ()).get(ERROR_KIND_KEY, ""))


async def refusal_of(call: Any) -> tuple[str, str]:
    """How a stream ends that somebody else ends, whatever it answers before."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        async for _ in call:
            pass
    return status_of(caught.value)


async def rest_of(call: Any) -> list[Any]:
    """What a call answers after what was read of it, to its end."""
    answers = []
    while (answer := await call.read()) is not grpc.aio.EOF:
        answers.append(answer)
    return answers


def _method(name: str) -> tuple[str, Any]:
    service_name, _, method_name = name.partition(".")
    service = pb.DESCRIPTOR.services_by_name[service_name]
    method = service.methods_by_name[method_name]
    return f"/{service.full_name}/{method_name}", message_factory.GetMessageClass(method.output_type)
