"""Reading one partition through a Flume port."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from streamhouse.client.address import parse_bootstrap
from streamhouse.client.flume.connection import FlumeConnection
from streamhouse.client.flume.errors import raise_for
from streamhouse.model.errors import Unavailable
from streamhouse.wire.flume.codes import ApiKey
from streamhouse.wire.flume.records import (
    EARLIEST,
    FetchRecord,
    FetchRequest,
    decode_fetch_response,
    encode_fetch_request,
)

__all__ = ["DEFAULT_MAX_BYTES", "EARLIEST", "AsyncConsumer", "Message"]

DEFAULT_MAX_BYTES = 65_536


class Message(NamedTuple):
    offset: int
    payload: bytes


class AsyncConsumer:
    """`async with AsyncConsumer("127.0.0.1:9094", "orders", 0, 0) as consumer: await consumer.fetch()`

    It knows where it is: each fetch goes on behind the last. `EARLIEST` as offset starts with the oldest message."""

    def __init__(self, address: str, topic: str, partition: int = 0, offset: int = 0) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self._address = parse_bootstrap(address)[0]
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
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def fetch(self, max_bytes: int = DEFAULT_MAX_BYTES) -> list[Message]:
        """The next messages, at once; none at the end of the partition. At least one, however large it is."""
        if self._connection is None:
            raise Unavailable("the consumer is not started", hint="use it in an `async with` block")
        records = await fetch_records(self._connection, self.topic, self.partition, self.offset, max_bytes)
        if records:
            self.offset = records[-1].offset + 1
        return [Message(*record) for record in records]

    def seek(self, offset: int) -> None:
        self.offset = offset


async def fetch_records(
    connection: FlumeConnection, topic: str, partition: int, offset: int, max_bytes: int
) -> Sequence[FetchRecord]:
    request = encode_fetch_request(FetchRequest(topic, partition, offset, max_bytes))
    payload = await connection.call(ApiKey.FETCH, request)
    response = decode_fetch_response(payload, 0, len(payload))
    raise_for(response.error_code, f"fetching {topic}/{partition} from {offset}")
    return response.records
