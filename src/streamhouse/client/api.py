"""The client for people who want neither librdkafka nor a protocol: topics, producers, consumers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self, TypeVar, overload

from streamhouse.client.address import Address, parse_bootstrap
from streamhouse.client.api_consumer import AsyncConsumer
from streamhouse.client.api_producer import AsyncProducer
from streamhouse.client.api_records import Delivery, Headers, Start, TopicInfo
from streamhouse.client.api_transport import Membership, Reading, Transport
from streamhouse.client.group_consumer import Reset
from streamhouse.client.serde import Format, Serde, serde_of
from streamhouse.model.config_units import without_units
from streamhouse.model.errors import InvalidInput, StreamHouseError

T = TypeVar("T")

DEFAULT_URL = "kafka://127.0.0.1:9092"
DEFAULT_GRPC_PORT = 50051
_COMMIT_EVERY_MS = 1_000


class AsyncClient:
    """A cluster, by the URL of one of its nodes:

        async with AsyncClient("kafka://127.0.0.1:9092") as client:
            await client.send("orders", {"id": 1}, key="alice")
            async for record in client.consumer("orders", group="billing"):
                print(record.value["id"])

    `kafka://` goes straight to the leaders and takes several addresses, separated by commas; `grpc://` goes through one
    node. What is opened here and not closed is closed with the client."""

    def __init__(self, url: str = DEFAULT_URL, *, client_id: str = "streamhouse-python") -> None:
        self._transport = open_transport(url, client_id)
        self._own_producers: dict[str, AsyncProducer] = {}
        self._producers: set[AsyncProducer] = set()
        self._consumers: set[AsyncConsumer[Any]] = set()

    async def open(self) -> None:
        """Unavailable if nobody answers; otherwise done by the first call."""
        await self._transport.open()

    async def close(self) -> None:
        """Consumers leave their groups, and what was sent is durable, or the first reason why it is not is raised."""
        for consumer in list(self._consumers):
            with suppress(StreamHouseError):
                await consumer.close()
        try:
            for producer in list(self._producers):
                await producer.close()
        finally:
            await self._transport.close()

    async def create_topic(
        self, name: str, *, partitions: int | None = None, config: Mapping[str, str] | None = None
    ) -> None:
        """AlreadyExists if it does. `config` has Kafka's names; durations and sizes may have units: "7d", "1GiB"."""
        await self._transport.create_topic(name, partitions, without_units(config or {}))

    async def create_partitions(self, name: str, *, partitions: int) -> None:
        """So many in all, which must be more than there are."""
        await self._transport.create_partitions(name, partitions)

    async def delete_topic(self, name: str) -> None:
        await self._transport.delete_topic(name)

    async def topics(self) -> list[TopicInfo]:
        """By name."""
        return await self._transport.topics()

    async def send(
        self, topic: str, value: Any, *, key: Any = None, headers: Headers = (), partition: int | None = None
    ) -> Delivery:
        """One record as JSON, durable when this returns. For many, and for other formats, there is `producer`."""
        producer = self._own_producers.get(topic)
        if producer is None:
            producer = self._own_producers[topic] = self.producer(topic)
        return await producer.send(value, key=key, headers=headers, partition=partition)

    def producer(
        self, topic: str, *, format: Format | Serde[Any] = "json", key_format: Format | Serde[Any] = "text"
    ) -> AsyncProducer:
        producer = AsyncProducer(
            self._transport.sink(), topic, serde_of(key_format), serde_of(format), self._producers.discard
        )
        self._producers.add(producer)
        return producer

    @overload
    def consumer(
        self,
        *topics: str,
        type: type[T],
        group: str | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        auto_commit: bool = True,
        key_format: Format | Serde[Any] = "text",
    ) -> AsyncConsumer[T]: ...

    @overload
    def consumer(
        self,
        *topics: str,
        format: Serde[T],
        group: str | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        auto_commit: bool = True,
        key_format: Format | Serde[Any] = "text",
    ) -> AsyncConsumer[T]: ...

    @overload
    def consumer(
        self,
        *topics: str,
        format: Literal["json", "text", "bytes"] = "json",
        type: Any = None,
        group: str | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        auto_commit: bool = True,
        key_format: Format | Serde[Any] = "text",
    ) -> AsyncConsumer[Any]: ...

    def consumer(
        self,
        *topics: str,
        type: Any = None,
        format: Format | Serde[Any] = "json",
        group: str | None = None,
        start: Start = "earliest",
        until_end: bool = False,
        auto_commit: bool = True,
        key_format: Format | Serde[Any] = "text",
    ) -> AsyncConsumer[Any]:
        """With a group, this member's share of the topics, from where the group is, or from `start` where it has not
        been; without one, all of a topic from `start` on, and no further than what is there now if `until_end`."""
        wanted: Reading | Membership
        if group is None:
            wanted = _reading(topics, start, until_end)
        else:
            wanted = _membership(topics, group, start, until_end, auto_commit)
        consumer: AsyncConsumer[Any] = AsyncConsumer(
            self._transport.source(wanted), serde_of(key_format), serde_of(format, type), self._consumers.discard
        )
        self._consumers.add(consumer)
        return consumer

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def open_transport(url: str, client_id: str) -> Transport:
    scheme, has_scheme, addresses = url.partition("://")
    if not has_scheme:
        scheme, addresses = "kafka", url
    # Loaded when it is used: nobody pays for the protocol that he does not speak.
    if scheme == "kafka":
        from streamhouse.client.kafka_transport import KafkaTransport

        return KafkaTransport(parse_bootstrap(addresses.rstrip("/")), client_id)
    if scheme == "grpc":
        from streamhouse.client.grpc_transport import GrpcTransport

        return GrpcTransport(str(_one_address(addresses.rstrip("/"))), client_id)
    raise InvalidInput(f"{url!r} is no address of a cluster", hint="write kafka://HOST:PORT or grpc://HOST:PORT")


def _one_address(text: str) -> Address:
    found = parse_bootstrap(text, DEFAULT_GRPC_PORT)
    if len(found) != 1:
        raise InvalidInput("gRPC goes through one node", hint="give one address, or use kafka://")
    return found[0]


def _reading(topics: Sequence[str], start: Start, until_end: bool) -> Reading:
    if len(topics) != 1:
        raise InvalidInput(f"{len(topics)} topics without a group", hint="name one topic, or a group")
    return Reading(topic=topics[0], start=start, until_end=until_end)


def _membership(topics: Sequence[str], group: str, start: Start, until_end: bool, auto_commit: bool) -> Membership:
    if not topics:
        raise InvalidInput("no topic to consume", hint="name at least one")
    if until_end:
        raise InvalidInput("a group has no end", hint="leave `group` or `until_end` out")
    if start not in ("earliest", "latest"):
        raise InvalidInput("a group starts where it has committed", hint="use start='earliest' or 'latest'")
    reset: Reset = "latest" if start == "latest" else "earliest"
    return Membership(
        topics=tuple(topics), group=group, reset=reset, commit_every_ms=_COMMIT_EVERY_MS if auto_commit else None
    )
