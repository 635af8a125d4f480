"""What all public gRPC calls share: limits, how they end when the node stops, health, reflection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from grpc_parts.calls import Api, api_of, connected, refusal_of, status_of
from log_parts.engines import finishes
from log_parts.waiting import until
from streamhouse.model.errors import NotFound
from streamhouse.model.settings import Settings
from streamhouse.server.grpc.listener import GrpcListener
from streamhouse.server.grpc.public import message_limits
from streamhouse.server.grpc.public.streams import Answers, Streams
from streamhouse.testing import Broker
from streamhouse.wire.grpc import streamhouse_v1_pb2 as pb

ECHO = "/test.Echo/Echo"
HUNG_S = 60
LARGE = 3 * 2**20
"""Of a message, to be on its way until the client reads."""


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(grpc=True) as broker:
        yield broker


@pytest.fixture
def api(broker: Broker, event_loop_runner: asyncio.Runner) -> Iterator[Api]:
    yield from api_of(broker, event_loop_runner)


@asynccontextmanager
async def echoing(
    streams: Streams, before_sending: Callable[[], None] = lambda: None
) -> AsyncIterator[grpc.aio.Channel]:
    """A service that says a topic's name and then nothing any more."""

    async def echo(request: pb.GetTopicRequest, answers: Answers[pb.Topic]) -> None:
        if request.name == "bad":
            raise NotFound("nothing is there")
        if request.name == "broken":
            raise ZeroDivisionError
        before_sending()
        await answers.send(pb.Topic(name=request.name, topic_id="x" * LARGE if request.name == "large" else ""))
        await asyncio.Event().wait()

    method = streams.answering(pb.GetTopicRequest, echo)
    listener = GrpcListener(Settings(), [grpc.method_handlers_generic_handler("test.Echo", {"Echo": method})])
    host, port = await listener.start("127.0.0.1", 0)
    async with grpc.aio.insecure_channel(f"{host}:{port}", options=[("grpc.enable_http_proxy", 0)]) as channel:
        yield channel
    await listener.close()


def echo_of(channel: grpc.aio.Channel, name: str, **options: Any) -> Any:
    return channel.unary_stream(ECHO)(pb.GetTopicRequest(name=name).SerializeToString(), **options)


# --- streams ---


async def test_streams_beyond_the_limit_are_refused_until_others_end() -> None:
    streams = Streams(max_streams=2)
    async with echoing(streams) as channel:
        first, second = echo_of(channel, "a"), echo_of(channel, "b")
        await first.read()
        await second.read()

        assert await refusal_of(echo_of(channel, "c")) == ("UNAVAILABLE", "unavailable")

        first.cancel()
        await until(lambda: len(streams) == 1, "the cancelled stream has ended")
        assert pb.Topic.FromString(await echo_of(channel, "d").read()).name == "d"


async def test_streams_of_requests_beyond_what_there_is_memory_for_are_refused() -> None:
    """2 MiB are the largest message here, and 3 MiB what may be received."""
    with Broker(grpc=True, max_request_bytes=2**21, receive_bytes=3 * 2**20) as broker:
        async with connected(broker.grpc_address) as api:
            await api.create_topic("t")
            streams = [api.converse("Records.ProduceStream") for _ in range(4)]
            for stream in streams:
                await stream.write(pb.ProduceStreamRequest(topic="t"))
                await stream.read()

            assert await refusal_of(api.converse("Records.ProduceStream")) == ("UNAVAILABLE", "unavailable")
            await api.produce("t", [b"other calls are taken"])
            await streams[0].done_writing()
            assert await _ending(streams[0]) == "OK"


@pytest.mark.parametrize("has_begun", [True, False])
async def test_a_stream_of_requests_that_is_silent_for_long_ends_and_says_why(has_begun: bool) -> None:
    """Half of a message may have been sent of which the other half never comes."""
    limit = {"idle_timeout": 500} if has_begun else {"request_timeout": 500}
    with Broker(grpc=True, **limit) as broker:
        async with connected(broker.grpc_address) as api:
            await api.create_topic("t")
            stream = api.converse("Records.ProduceStream")
            if has_begun:
                await stream.write(pb.ProduceStreamRequest(topic="t"))
                await stream.read()

            assert await finishes(stream.code(), "the silent stream ends") is grpc.StatusCode.DEADLINE_EXCEEDED
            assert ("open another" if has_begun else "first message") in await stream.details()


async def test_streams_that_only_answer_may_be_silent_for_as_long_as_they_want() -> None:
    with Broker(grpc=True, idle_timeout=300) as broker:
        async with connected(broker.grpc_address) as api:
            await api.create_topic("t")
            reading = api.listen("Records.Consume", pb.ConsumeRequest(topic="t"))
            await reading.initial_metadata()
            silent = api.converse("Records.ProduceStream")
            await silent.write(pb.ProduceStreamRequest(topic="t"))
            await silent.read()
            await finishes(silent.code(), "the silent stream ends")
            await api.produce("t", [b"late"])

            assert (await reading.read()).records[0].value == b"late"


async def test_open_streams_end_when_the_node_stops_and_new_ones_are_refused() -> None:
    streams = Streams()
    async with echoing(streams) as channel:
        open_one = echo_of(channel, "a")
        await open_one.read()

        streams.stop()

        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await open_one.read()
        assert status_of(caught.value) == ("UNAVAILABLE", "unavailable")
        assert await refusal_of(echo_of(channel, "b")) == ("UNAVAILABLE", "unavailable")


async def test_a_stream_that_is_sending_when_the_node_stops_ends_too() -> None:
    """gRPC takes no status while the first message is on its way with the headers."""
    streams, sends = Streams(), asyncio.Event()
    async with echoing(streams, sends.set) as channel:
        sending = echo_of(channel, "large")
        await sends.wait()

        streams.stop()

        assert await finishes(refusal_of(sending), "the stream") == ("UNAVAILABLE", "unavailable")


async def test_a_stream_ends_with_its_deadline() -> None:
    async with echoing(Streams()) as channel:
        assert (await refusal_of(echo_of(channel, "a", timeout=0.3)))[0] == "DEADLINE_EXCEEDED"


async def test_what_goes_wrong_in_a_stream_is_its_status_and_no_more_is_told_than_is_for_clients() -> None:
    async with echoing(Streams()) as channel:
        assert await refusal_of(echo_of(channel, "bad")) == ("NOT_FOUND", "not-found")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await echo_of(channel, "broken").read()
        assert status_of(caught.value) == ("INTERNAL", "internal")
        assert "Zero" not in (caught.value.details() or "")


async def test_a_message_that_is_none_or_too_large_is_refused(api: Api) -> None:
    call = api.channel.unary_stream
    too_large = b"\x0a" + b"\x80\x80\x80\x01" + b"x" * 2 * message_limits.MAX_QUESTION_BYTES

    for method in ("/streamhouse.v1.Records/Consume", "/streamhouse.v1.Groups/DescribeGroup"):
        assert await refusal_of(call(method)(b"\xff" * 40)) == ("INVALID_ARGUMENT", "malformed-request")
        assert await refusal_of(call(method)(too_large)) == ("INVALID_ARGUMENT", "invalid-input")


async def test_a_stopped_node_lets_go_of_its_consumers_at_once() -> None:
    with Broker(grpc=True) as broker:
        async with connected(broker.grpc_address) as api:
            await api.create_topic("t")
            calls = [
                api.listen("Records.Consume", pb.ConsumeRequest(topic="t"), timeout_s=None),
                api.listen("Groups.Subscribe", pb.SubscribeRequest(group_id="g", topics=["t"]), timeout_s=None),
                api.converse("Records.ProduceStream"),
            ]
            await calls[0].initial_metadata()
            await calls[1].read()
            await calls[2].write(pb.ProduceStreamRequest(topic="t"))
            await calls[2].read()

            stopping = asyncio.to_thread(broker.stop)
            endings = asyncio.gather(*map(_ending, calls))
            _, endings_seen = await asyncio.wait_for(asyncio.gather(stopping, endings), HUNG_S)

    assert endings_seen == ["UNAVAILABLE"] * 3


async def _ending(call: Any) -> str:
    try:
        while await call.read() is not grpc.aio.EOF:
            pass
    except grpc.aio.AioRpcError as problem:
        return problem.code().name
    return "OK"


# --- health ---


def health_check(api: Api, service: str = "") -> Any:
    ask = api.channel.unary_unary(
        "/grpc.health.v1.Health/Check", response_deserializer=health_pb2.HealthCheckResponse.FromString
    )
    return ask(health_pb2.HealthCheckRequest(service=service).SerializeToString(), timeout=HUNG_S)


@pytest.mark.parametrize("service", ["", "streamhouse.v1.Records", "streamhouse.v1.Groups"])
async def test_a_node_that_serves_says_so(api: Api, service: str) -> None:
    assert (await health_check(api, service)).status == health_pb2.HealthCheckResponse.SERVING


async def test_the_health_of_what_is_not_there_is_not_known(api: Api) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await health_check(api, "no.such.Service")

    assert status_of(caught.value) == ("NOT_FOUND", "not-found")


async def test_whoever_watches_a_node_is_told_that_it_stops() -> None:
    with Broker(grpc=True) as broker:
        async with connected(broker.grpc_address) as api:
            watch = api.channel.unary_stream(
                "/grpc.health.v1.Health/Watch", response_deserializer=health_pb2.HealthCheckResponse.FromString
            )(health_pb2.HealthCheckRequest().SerializeToString())
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING

            _, ending = await asyncio.gather(asyncio.to_thread(broker.stop), finishes(_ending(watch), "watching ends"))

    assert ending == "UNAVAILABLE"


# --- reflection ---


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_tools_learn_what_there_is_to_call(api: Api, version: str) -> None:
    call = api.channel.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
        response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
    )(timeout=HUNG_S)
    await call.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    services = {service.name for service in (await call.read()).list_services_response.service}
    await call.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol="streamhouse.v1.Records"))
    (file,) = (await call.read()).file_descriptor_response.file_descriptor_proto
    await call.done_writing()

    assert {f"streamhouse.v1.{name}" for name in ("Topics", "Records", "Groups", "Cluster")} < services
    assert "grpc.health.v1.Health" in services
    assert not any("internal" in service for service in services)
    described = descriptor_pb2.FileDescriptorProto.FromString(file)
    assert described.package == "streamhouse.v1"
    assert {service.name for service in described.service} == {"Topics", "Records", "Groups", "Cluster"}
