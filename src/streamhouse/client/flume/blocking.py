"""The same clients for code without an event loop: each has a thread with a loop of its own, on which its async twin
does the work."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from streamhouse.client.flume.consumer import DEFAULT_MAX_BYTES, AsyncConsumer, Message
from streamhouse.client.flume.group_consumer import (
    DEFAULT_SESSION_TIMEOUT_MS,
    AsyncGroupConsumer,
    GroupMessage,
)
from streamhouse.client.flume.partitioner import Partitioner
from streamhouse.client.flume.producer import DEFAULT_MAX_IN_FLIGHT, AsyncProducer, ProduceResult
from streamhouse.client.sync_thread import LoopThread
from streamhouse.wire.flume.groups import AssignedPartition


class _Blocking:
    """Connected from the start, until `close` or the end of a `with` block."""

    def __init__(self, twin: AsyncProducer | AsyncConsumer | AsyncGroupConsumer) -> None:
        self._lifecycle = twin
        self._thread = LoopThread()
        self._is_closed = False
        try:
            self._thread.run(twin.start())
        except BaseException:
            self._thread.stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            try:
                self._thread.run(self._lifecycle.close())
            finally:
                self._thread.stop()


class Producer(_Blocking):
    """`with Producer("127.0.0.1:9094") as producer: producer.produce("orders", b"...")`; see AsyncProducer."""

    def __init__(
        self,
        address: str,
        *,
        partitioner: Partitioner | None = None,
        partition_count: int | None = None,
        max_in_flight: int = DEFAULT_MAX_IN_FLIGHT,
    ) -> None:
        self._twin = AsyncProducer(
            address, partitioner=partitioner, partition_count=partition_count, max_in_flight=max_in_flight
        )
        super().__init__(self._twin)

    def produce(self, topic: str, payload: bytes) -> ProduceResult:
        return self._thread.run(self._twin.produce(topic, payload))

    def produce_with_key(self, topic: str, key: bytes, payload: bytes) -> ProduceResult:
        return self._thread.run(self._twin.produce_with_key(topic, key, payload))

    def produce_to_partition(self, topic: str, partition: int, key: bytes | None, payload: bytes) -> ProduceResult:
        return self._thread.run(self._twin.produce_to_partition(topic, partition, key, payload))

    def produce_many(self, topic: str, messages: Iterable[bytes | tuple[bytes | None, bytes]]) -> list[ProduceResult]:
        return self._thread.run(self._twin.produce_many(topic, messages))


class Consumer(_Blocking):
    """`with Consumer("127.0.0.1:9094", "orders", 0, 0) as consumer: consumer.fetch()`; see AsyncConsumer."""

    def __init__(self, address: str, topic: str, partition: int = 0, offset: int = 0) -> None:
        self._twin = AsyncConsumer(address, topic, partition, offset)
        super().__init__(self._twin)

    @property
    def partition(self) -> int:
        return self._twin.partition

    @property
    def offset(self) -> int:
        """Where the next fetch goes on."""
        return self._twin.offset

    def fetch(self, max_bytes: int = DEFAULT_MAX_BYTES) -> list[Message]:
        return self._thread.run(self._twin.fetch(max_bytes))

    def seek(self, offset: int) -> None:
        self._twin.seek(offset)


class GroupConsumer(_Blocking):
    """`with GroupConsumer("127.0.0.1:9094", "analytics", ["orders"]) as consumer: consumer.poll()`; see
    AsyncGroupConsumer. Heartbeats go on between two calls."""

    def __init__(
        self,
        address: str,
        group_id: str,
        topics: Sequence[str],
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
    ) -> None:
        self._twin = AsyncGroupConsumer(address, group_id, topics, session_timeout_ms=session_timeout_ms)
        super().__init__(self._twin)

    @property
    def member_id(self) -> str:
        return self._twin.member_id

    @property
    def generation(self) -> int:
        return self._twin.generation

    @property
    def assignment(self) -> tuple[AssignedPartition, ...]:
        return self._twin.assignment

    def poll(self, *, max_bytes: int = DEFAULT_MAX_BYTES, max_wait_ms: int = 500) -> list[GroupMessage]:
        return self._thread.run(self._twin.poll(max_bytes=max_bytes, max_wait_ms=max_wait_ms))

    def commit(self) -> None:
        self._thread.run(self._twin.commit())

    def committed(self, topic: str, partition: int) -> int | None:
        return self._thread.run(self._twin.committed(topic, partition))

    def seek(self, topic: str, partition: int, offset: int) -> None:
        self._twin.seek(topic, partition, offset)
