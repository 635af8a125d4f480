"""Writing through a Flume port: one message and its answer, or many on their way at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Self

from streamhouse.client.address import parse_bootstrap
from streamhouse.client.flume.connection import FlumeConnection
from streamhouse.client.flume.errors import raise_for
from streamhouse.client.flume.partitioner import Partitioner
from streamhouse.model.errors import InvalidInput, OutcomeUnknown, Unavailable
from streamhouse.wire.flume.codes import ApiKey
from streamhouse.wire.flume.records import (
    ANY_PARTITION,
    ProduceRequest,
    decode_produce_response,
    encode_produce_request,
)

DEFAULT_MAX_IN_FLIGHT = 500


class ProduceResult(NamedTuple):
    partition: int
    offset: int


class AsyncProducer:
    """`async with AsyncProducer("127.0.0.1:9094") as producer: await producer.produce("orders", b"...")`

    Without a partitioner the broker decides: by the key's FNV-1a, or partition 0 without a key. With one,
    `partition_count` must be that of the topics, since the protocol has no way to ask."""

    def __init__(
        self,
        address: str,
        *,
        partitioner: Partitioner | None = None,
        partition_count: int | None = None,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    ) -> None:
        if partitioner is not None and partition_count is None:
            raise InvalidInput("a partitioner needs the number of partitions", hint="give partition_count")
        self._address = parse_bootstrap(address)[0]
        self._partitioner = partitioner
        self._partition_count = partition_count
        self._room = asyncio.Semaphore(max_in_flight)
        self._connection: FlumeConnection | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        if self._connection is None:
            self._connection = await FlumeConnection.open(self._address)

    async def close(self) -> None:
        """What is still on its way has an unknown outcome."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def produce(self, topic: str, payload: bytes) -> ProduceResult:
        """A message without a key; returns when it is durable, with its place."""
        return await (await self.send(topic, payload))

    async def produce_with_key(self, topic: str, key: bytes, payload: bytes) -> ProduceResult:
        """Messages of one key go to one partition, in order."""
        return await (await self.send(topic, payload, key=key))

    async def produce_to_partition(
        self, topic: str, partition: int, key: bytes | None, payload: bytes
    ) -> ProduceResult:
        return await (await self.send(topic, payload, key=key, partition=partition))

    async def produce_many(
        self, topic: str, messages: Iterable[bytes | tuple[bytes | None, bytes]]
    ) -> list[ProduceResult]:
        """Payloads, or pairs of key and payload, without waiting for one before the next; places in their order.

        The broker stores those that reach it together as one batch. If some fail, the first failure is raised when all
        are settled."""
        on_their_way: list[asyncio.Future[ProduceResult]] = []
        for message in messages:
            key, payload = (None, message) if isinstance(message, bytes) else message
            on_their_way.append(await self.send(topic, payload, key=key))
        if on_their_way:
            await asyncio.wait(on_their_way)
        for sent in on_their_way:
            sent.exception()
        return [sent.result() for sent in on_their_way]

    async def send(
        self, topic: str, payload: bytes, *, key: bytes | None = None, partition: int | None = None
    ) -> asyncio.Future[ProduceResult]:
        """Send without waiting for the answer, which the future is for; waits while too many are on their way."""
        connection = self._connection
        if connection is None:
            raise Unavailable("the producer is not started", hint="use it in an `async with` block")
        if partition is None:
            partition = ANY_PARTITION
            if self._partitioner is not None and self._partition_count is not None:
                partition = self._partitioner.partition(key, self._partition_count)
        request = encode_produce_request(ProduceRequest(topic, partition, key or b"", payload))
        await self._room.acquire()
        result: asyncio.Future[ProduceResult] = asyncio.get_running_loop().create_future()
        answer = connection.send(ApiKey.PRODUCE, request)
        answer.add_done_callback(lambda answer: self._answered(topic, answer, result))
        await connection.drain()
        return result

    def _answered(self, topic: str, answer: asyncio.Future[memoryview], result: asyncio.Future[ProduceResult]) -> None:
        self._room.release()
        if result.done():
            return
        try:
            payload = answer.result()
            partition, offset, code = decode_produce_response(payload, 0, len(payload))
            raise_for(code, f"producing to {topic!r}")
            result.set_result(ProduceResult(partition, offset))
        except Unavailable as problem:
            result.set_exception(OutcomeUnknown(f"it may or may not be stored: {problem.message}", hint=problem.hint))
        except Exception as problem:
            result.set_exception(problem)
