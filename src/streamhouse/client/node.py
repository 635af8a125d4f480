"""Any address of a node leads to all of it: its Kafka port says where its HTTP port is, and the other way round.

Nothing else of Kafka's is touched for that: who asks a Kafka port is told by a read-only config of the broker, and what
an HTTP server answers to a request of Kafka's gives it away."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from typing import TypeVar
from urllib.parse import urlsplit

from streamhouse.client.address import Address, parse_bootstrap
from streamhouse.client.connection import Connection, ConnectionOptions, NotABroker, Silent, dial
from streamhouse.client.first_answer import HEAD_START_S, NoneAnswers, end, first_answer, first_of, problems_of
from streamhouse.client.http import HttpEndpoints
from streamhouse.client.node_question import HOW, ask_node, nothing_at
from streamhouse.model.broker_config import HTTP_ADDRESS_CONFIG
from streamhouse.model.errors import StreamHouseError, Unavailable
from streamhouse.runtime.tasks import begin
from streamhouse.wire.kafka.messages import describe_configs, metadata

Answer = TypeVar("Answer")

_PATIENCE_MS = 5_000
"""For each step of finding a node: one that is there answers at once."""
_BROKER_RESOURCE = 4
_NOT_A_NODE = -1
_URL = re.compile(r"https?://", re.IGNORECASE)


async def http_endpoint(bootstrap: str) -> str:
    """The URL of the first node's HTTP port that answers, of several with commas between: HOST:PORT of its Kafka port
    or of its HTTP port, or http://HOST:PORT."""
    try:
        return await first_answer(_parts(bootstrap), _endpoint_at)
    except NoneAnswers as silence:
        raise all_of(silence.problems) from None


async def http_endpoints(bootstrap: str) -> str:
    """As `http_endpoint`, for who works with nodes for long and goes to another when one is lost: those of all that
    answer, with commas between, and then URLs of others that may answer later."""
    parts = _parts(bootstrap)
    answering = await _answered([begin(_endpoint_at(part)) for part in parts])
    return ",".join(dict.fromkeys([*answering, *(part.rstrip("/") for part in parts if _is_url(part))]))


def check_bootstrap(bootstrap: str) -> None:
    """InvalidInput if it is not one address or URL, or several with commas between."""
    _parts(bootstrap)


async def addresses_of(bootstrap: str) -> Sequence[Address]:
    """Brokers to ask first, some of which may be HTTP ports; URLs are asked where the Kafka port is."""
    parts = _parts(bootstrap)
    found = [address for part in parts if not _is_url(part) for address in parse_bootstrap(part)]
    if urls := [part for part in parts if _is_url(part)]:
        try:
            found += await _answered([begin(kafka_address_at(url)) for url in urls])
        except Unavailable:
            if not found:
                raise
    return found


async def kafka_address_at(url: str) -> Address:
    """The Kafka port of the node with this HTTP port where it is said to be, else on the host by which that was
    reached."""
    (told,) = parse_bootstrap((await ask_node(url, _PATIENCE_MS)).kafka_address)
    tried = dict.fromkeys((told, Address(urlsplit(url).hostname or "", told.port)))
    for address in tried:
        try:
            _, writer = await dial(address, _PATIENCE_MS)
        except Unavailable:
            continue
        writer.close()
        return address
    raise Unavailable(
        f"the node at {url} says that its Kafka port is {told}, and nobody answers {_at_all_of(tried)}",
        hint="give its Kafka address with --bootstrap HOST:PORT, or start the node with --advertise",
    )


def neither_port(address: Address) -> NotABroker:
    return NotABroker(f"what answers at {address} is neither a node's Kafka port nor its HTTP port", hint=HOW)


def all_of(problems: Sequence[StreamHouseError]) -> StreamHouseError:
    """That none of several addresses led to a node."""
    if len(problems) == 1:
        return problems[0]
    return Unavailable("no node answers: " + "; ".join(each.message for each in problems), hint=problems[0].hint)


async def _answered(asked: Sequence[asyncio.Task[Answer]]) -> list[Answer]:
    """Of all that answer hardly later than the first one."""
    try:
        if await first_of(asked) is None:
            raise all_of(problems_of(asked))
        await asyncio.wait(asked, timeout=HEAD_START_S)
        return [task.result() for task in asked if task.done() and not isinstance(task.exception(), Unavailable)]
    finally:
        await end(asked)


async def _endpoint_at(part: str) -> str:
    return await (_from_url if _is_url(part) else _from_address)(part)


async def _from_url(url: str) -> str:
    await ask_node(url, _PATIENCE_MS)
    return url.rstrip("/")


async def _from_address(text: str) -> str:
    (address,) = parse_bootstrap(text)
    try:
        connection = await Connection.open(address, ConnectionOptions(connect_timeout_ms=_PATIENCE_MS))
    except NotABroker as problem:
        if problem.speaks_http:
            return await _from_url(f"http://{address}")
        raise neither_port(address) from None
    except Silent:
        raise
    except Unavailable as problem:
        raise nothing_at(address, problem.message.removeprefix(f"no broker at {address}")) from None
    async with connection:
        told = await _told_http(connection)
    return await _reachable(address, told)


async def _told_http(connection: Connection) -> str:
    """Which of the brokers it is, only it knows: it is asked for each, and answers for itself."""
    brokers = (await connection.call(metadata, metadata.MetadataRequest(topics=[]), timeout_ms=_PATIENCE_MS)).brokers
    asked = [
        describe_configs.DescribeConfigsResource(
            resource_type=_BROKER_RESOURCE, resource_name=str(node_id), configuration_keys=[HTTP_ADDRESS_CONFIG]
        )
        for node_id in {_NOT_A_NODE, *(broker.node_id for broker in brokers)}
    ]
    request = describe_configs.DescribeConfigsRequest(resources=asked)
    answer = await connection.call(describe_configs, request, timeout_ms=_PATIENCE_MS)
    told = [
        config.value for result in answer.results for config in result.configs if config.name == HTTP_ADDRESS_CONFIG
    ]
    if not told:
        raise Unavailable(f"{connection.address} is a Kafka broker and no StreamHouse node", hint=HOW)
    if not told[0]:
        raise Unavailable(f"the node at {connection.address} has no HTTP port open", hint="ask another node")
    return told[0]


async def _reachable(kafka: Address, told: str) -> str:
    """The HTTP port where it is said to be, else on the host by which the Kafka port was reached."""
    (said,) = parse_bootstrap(told)
    tried = dict.fromkeys((said, Address(kafka.host, said.port)))
    for address in tried:
        try:
            return await _from_url(f"http://{address}")
        except Unavailable:
            continue
    raise Unavailable(
        f"the node at {kafka} says that its HTTP port is {told}, and nothing of its answers {_at_all_of(tried)}",
        hint="give its HTTP address with --bootstrap http://HOST:PORT, or start the node with --advertise-http",
    )


def _at_all_of(addresses: Iterable[Address]) -> str:
    return " or ".join(f"at {address}" for address in addresses)


def _parts(bootstrap: str) -> list[str]:
    parts = [part.strip() for part in bootstrap.split(",")]
    for part in parts:
        if _is_url(part):
            HttpEndpoints(part, timeout_seconds=0)
        else:
            parse_bootstrap(part)
    return parts


def _is_url(text: str) -> bool:
    return _URL.match(text) is not None
