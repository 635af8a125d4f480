"""The brokers behind a bootstrap address: who leads what, and one connection to each that is needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from streamhouse.client.address import Address
from streamhouse.client.connection import Connection, ConnectionOptions, NotABroker
from streamhouse.client.errors import RETRIABLE, error_for, raise_for
from streamhouse.client.first_answer import NoneAnswers, first_answer
from streamhouse.client.node import addresses_of, kafka_address_at, neither_port
from streamhouse.model.errors import NotFound, NotLeader, StreamHouseError, Unavailable
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.runtime.retry import backoff_ms
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import metadata

Result = TypeVar("Result")

DEFAULT_RETRY_MS = 30_000
_NO_LEADER = -1
# As long as Kafka's clients go by what they know of a topic (metadata.max.age.ms).
_MAX_AGE_MS = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLeader:
    partition: int
    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicLeaders:
    """A topic as Metadata tells it; its partitions in order, so that an index is a partition."""

    name: str
    topic_id: UUID
    partitions: tuple[PartitionLeader, ...]


class Cluster:
    def __init__(
        self, bootstrap: Sequence[Address], *, options: ConnectionOptions | None = None, clock: Clock | None = None
    ) -> None:
        self._bootstrap = tuple(bootstrap)
        self._options = options or ConnectionOptions()
        self.clock = clock or SystemClock()
        self._nodes: dict[int, Address] = {}
        self._topics: dict[str, TopicLeaders] = {}
        self._asked_at_ms: dict[str, int] = {}
        self._connections: dict[Address, Connection] = {}
        self._dialing: dict[Address, asyncio.Lock] = {}

    @staticmethod
    @asynccontextmanager
    async def connect(bootstrap: str, options: ConnectionOptions | None = None) -> AsyncIterator[Cluster]:
        """A cluster that at least one bootstrap broker answered for; closed at the end of the block. A node's HTTP
        address, or URL, is as good as its Kafka address."""
        cluster = Cluster(await addresses_of(bootstrap), options=options)
        try:
            await cluster.any_broker()
            yield cluster
        finally:
            await cluster.close()

    async def any_broker(self) -> Connection:
        """A connection to whoever answers first: an open one, else the known brokers, else the bootstrap ones."""
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        try:
            return await first_answer(list(dict.fromkeys((*self._nodes.values(), *self._bootstrap))), self._broker_at)
        except NoneAnswers as silence:
            problems = silence.problems
        if len(problems) == 1:
            raise problems[0]
        raise Unavailable(
            "no broker answers: " + "; ".join(problem.message for problem in problems), hint=problems[0].hint
        )

    async def _broker_at(self, address: Address) -> Connection:
        """A node's HTTP port says where its Kafka port is."""
        try:
            return await self.connection(address)
        except NotABroker as problem:
            if not problem.speaks_http:
                raise neither_port(address) from None
        return await self.connection(await kafka_address_at(f"http://{address}"))

    def known_topic(self, name: str) -> TopicLeaders | None:
        """What is known of a topic without asking, if that is not old: partitions may have been added since."""
        return self._topics.get(name) if self._is_fresh(name) else None

    async def topic(self, name: str, *, create: bool = False) -> TopicLeaders:
        """What is known of a topic; the brokers are asked only if nothing is, or if it is old. `create` lets them make
        it."""
        known = self._topics.get(name)
        if known is not None and self._is_fresh(name):
            return known
        try:
            return (await self.refresh([name], create=create))[name]
        except RETRIABLE:
            if known is None:
                raise
            self._asked_at_ms[name] = self.clock.monotonic_ms()
            return known

    def _is_fresh(self, name: str) -> bool:
        return self.clock.monotonic_ms() - self._asked_at_ms.get(name, 0) < _MAX_AGE_MS

    async def refresh(self, names: Iterable[str], *, create: bool = False) -> dict[str, TopicLeaders]:
        """Asks for the topics anew; NotFound for the first that does not exist."""
        wanted = list(names)
        response = await self._ask_metadata(wanted, create=create)
        found = {topic.name: topic for topic in response.topics}
        for name in wanted:
            topic = found.get(name)
            if topic is None or topic.error_code != ErrorCode.NONE:
                self._topics.pop(name, None)
                code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.error_code
                raise _topic_problem(code, name)
            self._topics[name] = _leaders(topic)
            self._asked_at_ms[name] = self.clock.monotonic_ms()
        return {name: self._topics[name] for name in wanted}

    async def all_topics(self) -> list[TopicLeaders]:
        response = await self._ask_metadata(None, create=False)
        raise_for(response.error_code, "listing the topics")
        return sorted((_leaders(topic) for topic in response.topics if topic.name), key=lambda topic: topic.name)

    async def leader(self, topic: str, partition: int) -> Connection:
        """A connection to the broker that leads the partition, as far as is known."""
        partitions = (await self.topic(topic)).partitions
        if not 0 <= partition < len(partitions):
            raise NotFound(f"{topic} has no partition {partition}", hint=f"it has 0 to {len(partitions) - 1}")
        leader = partitions[partition].leader
        if leader == _NO_LEADER or leader not in self._nodes:
            raise NotLeader(f"nobody leads partition {partition} of {topic} right now")
        return await self.connection(self._nodes[leader])

    async def connection(self, address: Address) -> Connection:
        """The one connection to a broker that is already known by its address."""
        # The lock makes concurrent callers share one connection instead of opening several.
        async with self._dialing.setdefault(address, asyncio.Lock()):
            connection = self._connections.get(address)
            if connection is None or not connection.is_open:
                connection = self._connections[address] = await Connection.open(address, self._options)
            return connection

    async def retrying(
        self, attempt: Callable[[], Awaitable[Result]], *, topic: str | None = None, timeout_ms: int = DEFAULT_RETRY_MS
    ) -> Result:
        """Tries what may succeed later again until the time is up, after a wait and with new leaders of `topic`."""
        deadline = self.clock.monotonic_ms() + timeout_ms
        waits = backoff_ms(limit_ms=1_000)
        while True:
            try:
                return await attempt()
            except RETRIABLE:
                wait = next(waits)
                if self.clock.monotonic_ms() + wait > deadline:
                    raise
                await self.clock.sleep_ms(wait)
                if topic is not None:
                    self._topics.pop(topic, None)

    async def close(self) -> None:
        connections = list(self._connections.values())
        self._connections.clear()
        for connection in connections:
            await connection.close()

    async def _ask_metadata(self, names: list[str] | None, *, create: bool) -> metadata.MetadataResponse:
        topics = None if names is None else [metadata.MetadataRequestTopic(name=name) for name in names]
        request = metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=create)
        response = await (await self.any_broker()).call(metadata, request)
        self._nodes = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        return response


def _leaders(topic: metadata.MetadataResponseTopic) -> TopicLeaders:
    partitions = sorted(topic.partitions, key=lambda partition: partition.partition_index)
    return TopicLeaders(
        name=topic.name or "",
        topic_id=topic.topic_id,
        partitions=tuple(
            PartitionLeader(partition=p.partition_index, leader=p.leader_id, leader_epoch=p.leader_epoch)
            for p in partitions
        ),
    )


def _topic_problem(code: int, name: str) -> StreamHouseError:
    if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return NotFound(f"there is no topic {name!r}", hint="`streamhouse topic list` shows what there is")
    return error_for(code, f"topic {name!r}")
