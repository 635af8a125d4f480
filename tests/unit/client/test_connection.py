"""One connection: pipelining, deadlines, and brokers that misbehave."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from streamhouse.client.address import Address
from streamhouse.client.connection import Connection, ConnectionOptions
from streamhouse.model.errors import Unavailable, Unsupported
from streamhouse.wire.kafka.messages import api_versions, create_topics, metadata, produce


def all_topics() -> metadata.MetadataRequest:
    return metadata.MetadataRequest(topics=None)


def test_a_call_gets_the_answer_to_its_own_request(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 3}

    async def scenario() -> list[str]:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            return [topic.name or "" for topic in (await connection.call(metadata, all_topics())).topics]

    assert asyncio.run(scenario()) == ["orders"]


def test_calls_are_pipelined_and_answered_in_order(fake_broker: Any) -> None:
    fake_broker.topics = {f"topic-{number}": 1 for number in range(50)}

    async def scenario() -> list[str]:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            calls = [
                connection.call(
                    metadata, metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=f"topic-{number}")])
                )
                for number in range(50)
            ]
            return [answer.topics[0].name or "" for answer in await asyncio.gather(*calls)]

    assert asyncio.run(scenario()) == [f"topic-{number}" for number in range(50)]


def test_the_version_is_the_newest_that_both_sides_speak(fake_broker: Any) -> None:
    versions: list[int] = []

    def answer(request: Any, version: int) -> Any:
        versions.append(version)
        return fake_broker.answer_metadata(request, version)

    fake_broker.answers[metadata.API_KEY] = answer
    spoken = api_versions.ApiVersion(api_key=metadata.API_KEY, min_version=0, max_version=5)
    fake_broker.answers[api_versions.API_KEY] = lambda request, version: api_versions.ApiVersionsResponse(
        api_keys=[spoken]
    )

    async def scenario() -> None:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            await connection.call(metadata, all_topics())
            await connection.call(metadata, all_topics(), max_version=4)

    asyncio.run(scenario())
    assert versions == [5, 4]


def test_an_api_that_the_broker_lacks_is_unsupported(fake_broker: Any) -> None:
    async def scenario() -> None:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            await connection.call(create_topics, create_topics.CreateTopicsRequest())

    with pytest.raises(Unsupported, match="CreateTopics"):
        asyncio.run(scenario())


def test_no_broker_at_the_address_says_how_to_start_one() -> None:
    async def scenario() -> None:
        async with await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0) as server:
            address = Address(*server.sockets[0].getsockname())
        await Connection.open(address)

    with pytest.raises(Unavailable, match="start one with `streamhouse serve`"):
        asyncio.run(scenario())


def test_a_host_that_nobody_knows_is_named() -> None:
    with pytest.raises(Unavailable, match=r"nowhere\.invalid"):
        asyncio.run(Connection.open(Address("nowhere.invalid", 9092)))


def test_a_call_that_is_not_answered_in_time_closes_the_connection_for_everybody(fake_broker: Any) -> None:
    fake_broker.answers[metadata.API_KEY] = lambda request, version: None

    async def scenario() -> tuple[list[object], bool]:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            outcomes: list[object] = await asyncio.gather(
                connection.call(metadata, all_topics(), timeout_ms=20),
                connection.call(metadata, all_topics()),
                return_exceptions=True,
            )
            return outcomes, connection.is_open

    outcomes, is_open = asyncio.run(scenario())
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    assert not is_open


def test_a_broker_that_hangs_up_fails_what_waits_and_what_comes_later(fake_broker: Any) -> None:
    fake_broker.answers[metadata.API_KEY] = lambda request, version: ConnectionResetError

    async def scenario() -> None:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            with pytest.raises(Unavailable, match="lost the connection"):
                await connection.call(metadata, all_topics())
            assert not connection.is_open
            with pytest.raises(Unavailable, match="lost the connection"):
                await connection.call(metadata, all_topics())

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x7f\xff\xff\xff",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x00",
        b"\x00\x00\x00\x04\x00\x00\x30\x39",
        b"\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x7f\xff",
        b"",
    ],
)
def test_what_is_no_answer_closes_the_connection_without_being_believed(answer: bytes) -> None:
    async def talk_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(answer)
        writer.close()

    asyncio.run(_open_against(talk_nonsense))


async def _open_against(serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]) -> None:
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        with pytest.raises(Unavailable, match=r"no answer|lost the connection|is an HTTP server"):
            await Connection.open(Address(*server.sockets[0].getsockname()))


def test_a_response_above_the_limit_is_refused(fake_broker: Any) -> None:
    fake_broker.topics = {f"topic-{number}": 100 for number in range(100)}

    async def scenario() -> None:
        options = ConnectionOptions(max_response_bytes=10_000)
        async with fake_broker, await Connection.open(fake_broker.address, options) as connection:
            await connection.call(metadata, all_topics())

    with pytest.raises(Unavailable, match="bytes"):
        asyncio.run(scenario())


def test_a_request_without_an_answer_does_not_shift_those_that_follow(fake_broker: Any) -> None:
    fake_broker.topics = {"orders": 1}
    fake_broker.answers[produce.API_KEY] = lambda request, version: None

    async def scenario() -> int:
        async with fake_broker, await Connection.open(fake_broker.address) as connection:
            await connection.send_unanswered(produce, produce.ProduceRequest(acks=0))
            return len((await connection.call(metadata, all_topics())).topics)

    assert asyncio.run(scenario()) == 1
