"""The gRPC port: its limits, what it does with bytes that are no calls, and how it stops."""

from __future__ import annotations

import asyncio
import random
import socket
import subprocess
import sys
from typing import Any

import grpc
import pytest

from log_parts.engines import finishes
from log_parts.waiting import until
from peers.scripted import HUNG_MS, PARTITION, ScriptedPeer, connected, forever, listening
from streamhouse.model.errors import OutcomeUnknown, StreamHouseError, Unavailable
from streamhouse.model.settings import Settings
from streamhouse.server.grpc import calls, messages_in_time
from streamhouse.server.grpc.internal import SERVICE, InternalService
from streamhouse.server.grpc.listener import GrpcListener, message_limit_bytes
from streamhouse.wire.grpc import internal_pb2 as pb
from streamhouse.wire.grpc.error_kinds import ERROR_KIND_KEY

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS = bytes.fromhex("000000040000000000")
HOSTILE = {
    "noise": random.Random(7).randbytes(4096),
    "zeros": b"\0" * 4096,
    "HTTP/1": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a Kafka request": bytes.fromhex("7fffffff0012000300000001000474657374"),
    "TLS": bytes.fromhex("160301020001fc0303") + b"\xaa" * 500,
    "half a preface": PREFACE[:10],
    "a frame of 16 MiB": PREFACE + SETTINGS + bytes.fromhex("ffffff000000000001") + b"\0" * 100,
    "headers that are no HPACK": PREFACE + SETTINGS + bytes.fromhex("000040010400000001") + b"\xff" * 64,
    "data before headers": PREFACE + SETTINGS + bytes.fromhex("000005000100000001") + b"\0\0\0\0\0",
    "settings out of range": PREFACE + bytes.fromhex("000006040000000000") + b"\x00\x04\xff\xff\xff\xff",
    "endless continuation": PREFACE + SETTINGS + bytes.fromhex("000001010000000001") + b"\x82" * 4096,
}


def channel_to(port: int) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_http_proxy", 0)])


async def call_raw(port: int, method: str, message: bytes, **options: Any) -> grpc.aio.AioRpcError:
    """What a caller gets that is not our client and does not get an answer."""
    async with channel_to(port) as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary(method)(message, **options)
    return caught.value


def kind_in(problem: grpc.aio.AioRpcError) -> object:
    return dict(problem.trailing_metadata()).get(ERROR_KIND_KEY)


# --- bytes that are no calls ---


@pytest.mark.parametrize("what", HOSTILE)
async def test_bytes_that_are_no_call_end_their_own_connection_at_most(what: str) -> None:
    async with listening(ScriptedPeer()) as port, connected(port) as client:
        await client.flush(PARTITION, timeout_ms=HUNG_MS)
        for _ in range(5):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HOSTILE[what])
            writer.write_eof()
            await finishes(_read_to_the_end(reader), "the connection is closed")
            writer.close()

        assert await client.flush(PARTITION, timeout_ms=HUNG_MS) == 12


async def _read_to_the_end(reader: asyncio.StreamReader) -> None:
    try:
        while await reader.read(4096):
            pass
    except ConnectionError:
        pass


@pytest.mark.parametrize("message", [b"\xff" * 100, b"\x0a\xff\xff\xff\xff\x0f", b"\x1a\x05abc"])
async def test_a_message_that_cannot_be_read_is_refused(message: bytes) -> None:
    async with listening(ScriptedPeer()) as port:
        problem = await call_raw(port, f"/{SERVICE}/Produce", message, timeout=60)

    assert problem.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert kind_in(problem) == "malformed-request"


@pytest.mark.parametrize("topic_id", [b"", b"short", b"x" * 17])
async def test_a_topic_id_that_is_none_is_refused(topic_id: bytes) -> None:
    peer = ScriptedPeer()
    request = pb.FlushRequest(partition=pb.Partition(topic_id=topic_id))
    async with listening(peer) as port:
        problem = await call_raw(port, f"/{SERVICE}/Flush", request.SerializeToString(), timeout=60)

    assert kind_in(problem) == "invalid-input"
    assert peer.asked == []


async def test_a_method_that_does_not_exist_is_unimplemented() -> None:
    async with listening(ScriptedPeer()) as port:
        problem = await call_raw(port, f"/{SERVICE}/Nothing", b"", timeout=60)

    assert problem.code() is grpc.StatusCode.UNIMPLEMENTED


# --- deadlines that callers do not give ---


async def test_a_call_without_a_deadline_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "DEFAULT_DEADLINE_S", 0.2)
    peer = ScriptedPeer(first=forever)
    async with listening(peer) as port:
        problem = await finishes(call_raw(port, f"/{SERVICE}/NudgeTransfers", b""), "the call")

    assert problem.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert peer.cancelled == len(peer.asked)  # none, if the time was over before the message was read


async def test_a_deadline_of_a_century_is_shortened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LONGEST_DEADLINE_S", 0.2)
    async with listening(ScriptedPeer(first=forever)) as port:
        problem = await finishes(call_raw(port, f"/{SERVICE}/NudgeTransfers", b"", timeout=3e9), "the call")

    assert problem.code() is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_caller_that_announces_a_message_and_sends_none_does_not_keep_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "DEFAULT_DEADLINE_S", 0.3)
    async with (
        listening(ScriptedPeer(), max_calls=1) as port,
        connected(port) as client,
        channel_to(port) as channel,
    ):
        silent = channel.stream_unary(f"/{SERVICE}/Flush")()
        assert await finishes(silent.code(), "the silent call ends") is grpc.StatusCode.DEADLINE_EXCEEDED

        async def answers() -> int:
            while True:
                try:
                    return await client.flush(PARTITION, timeout_ms=HUNG_MS)
                except Unavailable:  # its place is given back a moment after its caller has heard
                    await asyncio.sleep(0.01)

        assert await finishes(answers(), "there is room for a call") == 12


async def test_a_first_message_that_does_not_come_in_time_ends_its_call() -> None:
    """Whatever the caller's own deadline: until then it would hold what was sent of it."""
    async with listening(ScriptedPeer(), request_timeout=200) as port, channel_to(port) as channel:
        silent = channel.stream_unary(f"/{SERVICE}/Flush")(timeout=HUNG_MS / 1000)
        assert await finishes(silent.code(), "the silent call ends") is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_first_messages_beyond_what_there_is_memory_for_have_less_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """They keep nobody waiting, large or small."""
    monkeypatch.setattr(messages_in_time, "CROWDED_S", 0.2)
    limits = {"max_request_bytes": 2**21, "receive_bytes": 3 * 2**20, "request_timeout": HUNG_MS}
    async with listening(ScriptedPeer(), **limits) as port, connected(port) as client, channel_to(port) as channel:
        silent = [channel.stream_unary(f"/{SERVICE}/Flush")(timeout=HUNG_MS / 1000) for _ in range(5)]
        ended = [asyncio.ensure_future(call.code()) for call in silent]
        await until(lambda: sum(end.done() for end in ended) == 4, "all but one have ended")

        assert {end.result() for end in ended if end.done()} == {grpc.StatusCode.DEADLINE_EXCEEDED}
        assert await client.flush(PARTITION, timeout_ms=HUNG_MS) == 12
        assert not all(end.done() for end in ended)
        for call in silent:
            call.cancel()


# --- how much is taken ---


async def test_a_message_is_taken_up_to_the_limit_of_the_port() -> None:
    """Half sent, it would be kept until it is whole; so many calls can do that."""
    limit_bytes = message_limit_bytes(Settings())
    async with listening(ScriptedPeer()) as port:
        at_limit = await call_raw(port, f"/{SERVICE}/Nudge", bytes(limit_bytes), timeout=60)
        problem = await call_raw(port, f"/{SERVICE}/Flush", bytes(limit_bytes + 1), timeout=60)

    assert limit_bytes < 17 * 2**20
    assert at_limit.code() is grpc.StatusCode.UNIMPLEMENTED
    assert problem.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_batches_that_are_larger_by_the_settings_have_room() -> None:
    assert message_limit_bytes(Settings(max_message_bytes=50 * 2**20)) > 50 * 2**20
    assert message_limit_bytes(Settings(max_message_bytes=2**20, max_request_bytes=2**21)) < 3 * 2**20


@pytest.mark.parametrize("algorithm", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_compressed_messages_are_refused(algorithm: grpc.Compression) -> None:
    peer = ScriptedPeer()
    async with listening(peer) as port:
        problem = await call_raw(port, f"/{SERVICE}/Produce", bytes(100_000), timeout=60, compression=algorithm)

    assert problem.code() is grpc.StatusCode.UNIMPLEMENTED
    assert peer.asked == []


async def test_a_call_that_ends_without_a_message_is_refused() -> None:
    async with listening(ScriptedPeer()) as port, channel_to(port) as channel:
        empty = channel.stream_unary(f"/{SERVICE}/Flush")(timeout=60)
        await empty.done_writing()

        assert await finishes(empty.code(), "the call ends") is grpc.StatusCode.INVALID_ARGUMENT


# --- the port ---


async def test_connections_beyond_the_limit_are_not_served() -> None:
    async with listening(ScriptedPeer(), max_connections=2) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        for reader, _ in held:
            assert await finishes(reader.readexactly(1), "the port greets with its settings")
        async with connected(port, connect_timeout_ms=500) as client:
            with pytest.raises(Unavailable):
                await client.flush(PARTITION, timeout_ms=HUNG_MS)
        for _, writer in held:
            writer.close()


async def test_a_port_that_is_taken_is_an_error_that_says_what_to_do() -> None:
    async with listening(ScriptedPeer()) as port:
        with pytest.raises(Unavailable, match="--grpc-port"):
            async with listening(ScriptedPeer(), port=port):
                pass


async def test_one_port_serves_several_services() -> None:
    class Other(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> Any:
            async def echo(message: bytes, _: Any) -> bytes:
                return message

            return grpc.unary_unary_rpc_method_handler(echo) if details.method == "/other/Echo" else None

    listener = GrpcListener(Settings(), [InternalService(ScriptedPeer()).handler(), Other()])
    _, port = await listener.start("127.0.0.1", 0)
    async with channel_to(port) as channel:
        assert await channel.unary_unary("/other/Echo")(b"hello", timeout=60) == b"hello"
    async with connected(port) as client:
        assert await client.flush(PARTITION, timeout_ms=HUNG_MS) == 12
    await listener.close()


# --- stopping ---


async def test_draining_lets_calls_end_and_takes_no_new_ones() -> None:
    release = asyncio.Event()
    peer = ScriptedPeer(first=lambda: release.wait())
    listener = GrpcListener(Settings(), [InternalService(peer).handler()])
    _, port = await listener.start("127.0.0.1", 0)
    async with connected(port) as client, connected(port) as late:
        call = asyncio.ensure_future(client.flush(PARTITION, timeout_ms=HUNG_MS))
        await until(lambda: peer.asked, "the call is under way")
        drain = asyncio.ensure_future(listener.drain(HUNG_MS))
        await until(lambda: _refuses(port), "the port is closed")
        with pytest.raises(Unavailable) as caught:
            await late.produce(PARTITION, b"batch", timeout_ms=HUNG_MS)
        release.set()

        assert await finishes(call, "the call") == 12
        await finishes(drain, "the drain")
        assert not isinstance(caught.value, OutcomeUnknown)


def _refuses(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return True
    return False


async def test_a_drain_does_not_wait_longer_than_its_grace() -> None:
    peer = ScriptedPeer(first=forever)
    listener = GrpcListener(Settings(), [InternalService(peer).handler()])
    _, port = await listener.start("127.0.0.1", 0)
    async with connected(port) as client:
        call = asyncio.ensure_future(client.produce(PARTITION, b"batch", timeout_ms=HUNG_MS))
        await until(lambda: peer.asked, "the call is under way")
        await finishes(listener.drain(100), "the drain")

        with pytest.raises(StreamHouseError) as caught:
            await finishes(call, "the call")
    assert isinstance(caught.value, OutcomeUnknown)


async def test_a_listener_that_never_started_can_be_stopped() -> None:
    listener = GrpcListener(Settings(), [])

    await listener.drain(100)
    await listener.close()


def test_a_broker_inside_a_test_does_not_import_grpc() -> None:
    program = "import sys, streamhouse.testing; sys.exit('grpc' in sys.modules or 'google.protobuf' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
