"""Any address of a node leads to all of it: its Kafka port says where its HTTP port is, and the other way round.

Nothing else of Kafka's is touched for that: who asks a Kafka port is told by a read-only config of the broker, and what
an HTTP server answers to a request of Kafka's gives it away."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import msgspec

from streamhouse.client.address import Address, parse_bootstrap
from streamhouse.client.connection import Connection, ConnectionOptions, NotABroker
from streamhouse.client.http import HttpEndpoints
from streamhouse.model.broker_config import HTTP_ADDRESS_CONFIG
from streamhouse.model.errors import InvalidInput, StreamHouseError, Unavailable
from streamhouse.wire.http.rest.cluster import NodeAnswer
from streamhouse.wire.kafka.messages import describe_configs, metadata

_PATIENCE_MS = 5_000
"""For each step of finding a node: one that is there answers at once."""
_NODE_PATH = "/api/v1/node"
_BROKER_RESOURCE = 4
_NOT_A_NODE = -1
_URL = re.compile(r"https?://", re.IGNORECASE)
_HOW = "give --bootstrap with a node's Kafka or HTTP address; `streamhouse serve` starts one"


async def http_endpoint(bootstrap: str) -> str:
    """The URL of the first node's HTTP port that answers, of several with commas between: HOST:PORT of its Kafka port
    or of its HTTP port, or http://HOST:PORT."""
    problems: list[StreamHouseError] = []
    for part in _parts(bootstrap):
        find = _from_url if _is_url(part) else _from_address
        try:
            return await find(part)
        except Unavailable as problem:
            problems.append(problem)
    raise _all_of(problems)


async def http_endpoints(bootstrap: str) -> str:
    """As `http_endpoint`, for who works with nodes for long and goes to another when one is lost: those of all that
    answer, with commas between, and then URLs of others that may answer later."""
    parts = _parts(bootstrap)
    found = await asyncio.gather(*(http_endpoint(part) for part in parts), return_exceptions=True)
    problems: dict[str, StreamHouseError] = {}
    for part, result in zip(parts, found, strict=True):
        if isinstance(result, Unavailable):
            problems[part] = result
        elif isinstance(result, BaseException):
            raise result
    answering = [result for result in found if isinstance(result, str)]
    if not answering:
        raise _all_of(list(problems.values()))
    return ",".join(dict.fromkeys([*answering, *filter(_is_url, problems)]))


def check_bootstrap(bootstrap: str) -> None:
    """InvalidInput if it is not one address or URL, or several with commas between."""
    for part in _parts(bootstrap):
        if _is_url(part):
            HttpEndpoints(part, timeout_seconds=0)
        else:
            parse_bootstrap(part)


async def addresses_of(bootstrap: str) -> Sequence[Address]:
    """Brokers to ask first, some of which may be HTTP ports; URLs are asked where the Kafka port is."""
    found: list[Address] = []
    problems: list[StreamHouseError] = []
    for part in _parts(bootstrap):
        if not _is_url(part):
            found += parse_bootstrap(part)
            continue
        try:
            found.append(await asyncio.to_thread(kafka_address_at, part))
        except Unavailable as problem:
            problems.append(problem)
    if not found:
        raise _all_of(problems)
    return found


def kafka_address_at(url: str) -> Address:
    """Where the node with this HTTP port says that its Kafka port is; blocking."""
    return parse_bootstrap(_node_at(url).kafka_address)[0]


async def _from_url(url: str) -> str:
    await asyncio.to_thread(_node_at, url)
    return url.rstrip("/")


async def _from_address(text: str) -> str:
    (address,) = parse_bootstrap(text)
    try:
        connection = await Connection.open(address, ConnectionOptions(connect_timeout_ms=_PATIENCE_MS))
    except NotABroker as problem:
        if problem.speaks_http:
            return await _from_url(f"http://{address}")
        raise Unavailable(
            f"what answers at {address} is neither a node's Kafka port nor its HTTP port", hint=_HOW
        ) from None
    except Unavailable as problem:
        raise _nothing_at(address, problem.message.removeprefix(f"no broker at {address}")) from None
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
        raise Unavailable(f"{connection.address} is a Kafka broker and no StreamHouse node", hint=_HOW)
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
        f"the node at {kafka} says that its HTTP port is {told}, and nothing of its answers"
        f" {' or '.join(f'at {address}' for address in tried)}",
        hint="give its HTTP address with --bootstrap http://HOST:PORT, or start the node with --advertise-http",
    )


def _node_at(url: str) -> NodeAnswer:
    endpoints = HttpEndpoints(url, timeout_seconds=_PATIENCE_MS / 1000, retry_seconds=0)
    try:
        return msgspec.json.decode(endpoints.call("GET", _NODE_PATH), type=NodeAnswer)
    except Unavailable as problem:
        raise _nothing_at(url, problem.message.partition("does not answer: ")[2] or problem.message) from None
    except InvalidInput:
        raise
    except (StreamHouseError, msgspec.DecodeError) as problem:
        raise Unavailable(
            f"what answers at {url} is an HTTP server and no StreamHouse node: {problem}", hint=_HOW
        ) from None
    finally:
        endpoints.close()


def _nothing_at(address: object, why: str) -> Unavailable:
    return Unavailable(f"nothing answers at {address}{f': {why}' if why else ''}", hint=_HOW)


def _parts(bootstrap: str) -> list[str]:
    return [part.strip() for part in bootstrap.split(",")]


def _is_url(text: str) -> bool:
    return _URL.match(text) is not None


def _all_of(problems: Sequence[StreamHouseError]) -> StreamHouseError:
    if len(problems) == 1:
        return problems[0]
    return Unavailable("no node answers: " + "; ".join(each.message for each in problems), hint=problems[0].hint)
