"""The client without `async`: the same one, run by a thread of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeVar, overload
from weakref import WeakSet

from streamhouse.client.api import DEFAULT_URL, AsyncClient
from streamhouse.client.api_consumer import AsyncConsumer
from streamhouse.client.api_producer import AsyncProducer
from streamhouse.client.api_records import Delivery, Headers, Record, Start, TopicInfo
from streamhouse.client.groups_admin import GroupPartition
from streamhouse.client.serde import Format, Serde
from streamhouse.client.sync_producer import Producer
from streamhouse.client.sync_thread import LoopThread

T = TypeVar("T")

_POLL_MS = 1_000


class Consumer(Generic[T]):
    """What AsyncConsumer is: `for record in consumer`."""

    def __init__(self, thread: LoopThread, inner: AsyncConsumer[T]) -> None:
        self._thread = thread
        self._inner = inner

    @property
    def assignment(self) -> tuple[GroupPartition, ...]:
        return self._inner.assignment

    def poll(self, *, max_wait_ms: int = _POLL_MS) -> Record[T] | None:
        """The next record, or None if there is none within the wait."""
        if not self._inner.has_waiting:
            self._thread.run(self._inner.fill(max_wait_ms))
        return self._inner.take() if self._inner.has_waiting else None

    def commit(self, record: Record[T] | None = None) -> None:
        self._thread.run(self._inner.commit(record))

    def close(self) -> None:
        self._thread.run(self._inner.close())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record[T]:
        # Only for more records is the other thread asked: to ask it for each would cost more than the rest.
        while not self._inner.has_waiting:
            if self._inner.is_over:
                raise StopIteration
            self._thread.run(self._inner.fill(_POLL_MS))
        return self._inner.take()

    def __enter__(self) -> Self:
        self._thread.run(self._inner.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.run(self._inner.__aexit__(kind, value, trace))


class Client:
    """What AsyncClient is, for code that waits:

    with Client("grpc://127.0.0.1:50051") as client:
        client.send("orders", {"id": 1}, key="alice")
        for record in client.consumer("orders", group="billing"):
            print(record.value["id"])

    One thread at a time may use a consumer; the rest may be shared."""

    def __init__(self, url: str = DEFAULT_URL, *, client_id: str = "streamhouse-python") -> None:
        self._thread = LoopThread()
        self._producers: WeakSet[Producer] = WeakSet()
        try:
            self._inner = self._thread.run(_make(url, client_id))
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        try:
            for producer in list(self._producers):
                producer.wait_handed_over()
            self._thread.run(self._inner.close())
        finally:
            self._thread.stop()

    def create_topic(
        self, name: str, *, partitions: int | None = None, config: Mapping[str, str] | None = None
    ) -> None:
        self._thread.run(self._inner.create_topic(name, partitions=partitions, config=config))

    def create_partitions(self, name: str, *, partitions: int) -> None:
        self._thread.run(self._inner.create_partitions(name, partitions=partitions))

    def delete_topic(self, name: str) -> None:
        self._thread.run(self._inner.delete_topic(name))

    def topics(self) -> list[TopicInfo]:
        return self._thread.run(self._inner.topics())

    def send(
        self, topic: str, value: Any, *, key: Any = None, headers: Headers = (), partition: int | None = None
    ) -> Delivery:
        return self._thread.run(self._inner.send(topic, value, key=key, headers=headers, partition=partition))

    def producer(
        self, topic: str, *, format: Format | Serde[Any] = "json", key_format: Format | Serde[Any] = "text"
    ) -> Producer:
        producer = Producer(self._thread, self._thread.run(_producer(self._inner, topic, format, key_format)))
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
    ) -> Consumer[T]: ...

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
    ) -> Consumer[T]: ...

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
    ) -> Consumer[Any]: ...

    def consumer(self, *topics: str, **wanted: Any) -> Consumer[Any]:
        return Consumer(self._thread, self._thread.run(_consumer(self._inner, topics, wanted)))

    def __enter__(self) -> Self:
        try:
            self._thread.run(self._inner.open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


# What belongs to a loop is made on it.


async def _make(url: str, client_id: str) -> AsyncClient:
    return AsyncClient(url, client_id=client_id)


async def _producer(
    client: AsyncClient, topic: str, format: Format | Serde[Any], key_format: Format | Serde[Any]
) -> AsyncProducer:
    return client.producer(topic, format=format, key_format=key_format)


async def _consumer(client: AsyncClient, topics: tuple[str, ...], wanted: dict[str, Any]) -> AsyncConsumer[Any]:
    return client.consumer(*topics, **wanted)
