"""Sends records: chooses their partitions as Kafka's clients do and bounds what is on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import TracebackType

from streamhouse.client.cluster import Cluster
from streamhouse.client.partition_sender import Acks, Delivered, PartitionSender, ProducerOptions
from streamhouse.core.partitioner import partition_for_key
from streamhouse.format.records import Record
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.runtime.tasks import TaskGroup

# What a record takes besides its bytes: lengths, deltas, and its share of bookkeeping here.
_RECORD_OVERHEAD_BYTES = 32
_KEYLESS_RUN_BYTES = 16 * 1024


class Producer:
    """`await send(...)` takes a record in, waiting only for room; what it returns is done when the broker has it."""

    def __init__(self, cluster: Cluster, options: ProducerOptions | None = None) -> None:
        self._options = options or ProducerOptions()
        if self._options.idempotent and self._options.acks is not Acks.ALL:
            raise InvalidInput("an idempotent producer needs acks=all", hint="turn idempotence off for fewer acks")
        self._cluster = cluster
        self._senders: dict[tuple[str, int], PartitionSender] = {}
        self._tasks = TaskGroup("producer")
        self._buffered_bytes = 0
        self._progress = asyncio.Event()
        self._sticky: dict[str, tuple[int, int]] = {}

    async def send(
        self,
        topic: str,
        *,
        value: bytes | None,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[Delivered]:
        """Without a partition, the key decides; without a key, partitions take turns, a run of records each."""
        size = _record_bytes(key, value, headers)
        # Per record, awaiting what need not wait costs more than the rest of this method.
        known = self._cluster.known_topic(topic) or await self._cluster.topic(topic, create=True)
        count = len(known.partitions)
        if partition is None:
            partition = partition_for_key(key, count) if key is not None else self._next_keyless(topic, count, size)
        elif partition not in range(count):
            raise NotFound(f"{topic} has no partition {partition}", hint=f"it has 0 to {count - 1}")
        if self._buffered_bytes + size > self._options.buffer_bytes:
            await self._wait_for_room(size)
        self._buffered_bytes += size
        record = Record(
            offset=0,
            timestamp_ms=self._cluster.clock.now_ms() if timestamp_ms is None else timestamp_ms,
            key=key,
            value=value,
            headers=tuple(headers),
        )
        return self._sender(topic, partition).add(record, size)

    async def flush(self) -> None:
        """Until nothing is on its way any more, well or badly: each record's own future says which."""
        while self._buffered_bytes:
            for sender in self._senders.values():
                sender.hurry()
            await self._wait_progress()

    async def close(self) -> None:
        """Flushes first."""
        await self.flush()
        await self.abandon()

    async def abandon(self) -> None:
        """Ends without waiting for what is on its way."""
        await self._tasks.cancel()

    async def __aenter__(self) -> Producer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After an error nobody waits for what is left; it is not worth a delivery timeout.
        if kind is None:
            await self.flush()
        await self.abandon()

    def _next_keyless(self, topic: str, partition_count: int, size_bytes: int) -> int:
        """Runs instead of single records, because a partition's batch is better the more it holds."""
        partition, run_bytes = self._sticky.get(topic, (0, 0))
        if run_bytes >= _KEYLESS_RUN_BYTES:
            partition, run_bytes = (partition + 1) % partition_count, 0
        self._sticky[topic] = (partition, run_bytes + size_bytes)
        return partition

    async def _wait_for_room(self, size_bytes: int) -> None:
        # A record larger than the whole buffer may go when it is alone.
        while self._buffered_bytes and self._buffered_bytes + size_bytes > self._options.buffer_bytes:
            await self._wait_progress()

    async def _wait_progress(self) -> None:
        self._progress.clear()
        await self._progress.wait()

    def _settled(self, size_bytes: int) -> None:
        self._buffered_bytes -= size_bytes
        self._progress.set()

    def _sender(self, topic: str, partition: int) -> PartitionSender:
        sender = self._senders.get((topic, partition))
        if sender is None:
            sender = PartitionSender(self._cluster, topic, partition, self._options, on_settled=self._settled)
            self._senders[topic, partition] = sender
            self._tasks.start(sender.run(), f"{topic}/{partition}")
        return sender


def _record_bytes(key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes | None]]) -> int:
    """About what the record takes in a batch and here; the sizes that count are the broker's."""
    size = _RECORD_OVERHEAD_BYTES
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size
