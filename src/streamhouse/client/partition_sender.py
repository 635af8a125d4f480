"""The one owner of a producer's records for one partition: forms batches, sends them in order, one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from streamhouse.client.cluster import Cluster
from streamhouse.client.errors import error_for, raise_for
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records
from streamhouse.model.errors import BatchTooLarge, StreamHouseError
from streamhouse.wire.kafka.codes import ErrorCode
from streamhouse.wire.kafka.messages import init_producer_id, produce

# The last version that names topics; from 13 on it is their ids.
_MAX_PRODUCE_VERSION = 12
_SEQUENCES = 2**31


class Acks(IntEnum):
    NONE = 0
    LEADER = 1
    ALL = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """`linger_ms` is how long a first record waits for company; while a batch is on its way, the next forms anyway."""

    acks: Acks = Acks.ALL
    codec: Codec = Codec.NONE
    idempotent: bool = True
    linger_ms: int = 2
    batch_bytes: int = 512 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """Where a record went; the offset is None with acks=0, or when a lost answer left it unknown."""

    topic: str
    partition: int
    offset: int | None


@dataclass(frozen=True, slots=True)
class _Identity:
    """What makes a repeated batch recognisable; a plain producer has none."""

    producer_id: int = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class _Waiting:
    record: Record
    size_bytes: int
    delivered: asyncio.Future[Delivered]


class PartitionSender:
    """Has a producer id of its own, so that a failure here does not disturb the sequences of other partitions."""

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        partition: int,
        options: ProducerOptions,
        *,
        on_settled: Callable[[int], None],
    ) -> None:
        """`on_settled` is told how many bytes are no longer on their way."""
        self._cluster = cluster
        self._topic = topic
        self._partition = partition
        self._options = options
        self._on_settled = on_settled
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._due = asyncio.Event()
        self._identity: _Identity | None = None if options.idempotent else _Identity()
        self._next_sequence = 0

    def add(self, record: Record, size_bytes: int) -> asyncio.Future[Delivered]:
        delivered: asyncio.Future[Delivered] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(record, size_bytes, delivered))
        self._waiting_bytes += size_bytes
        self._arrived.set()
        if self._waiting_bytes >= self._options.batch_bytes:
            self._due.set()
        return delivered

    def hurry(self) -> None:
        """Send what waits without lingering."""
        if self._waiting:
            self._due.set()

    async def run(self) -> None:
        """Forever, until cancelled."""
        while True:
            await self._arrived.wait()
            await self._linger()
            await self._deliver(self._cut())

    async def _linger(self) -> None:
        if self._options.linger_ms <= 0:
            return
        try:
            async with asyncio.timeout(self._options.linger_ms / 1000):
                await self._due.wait()
        except TimeoutError:
            pass

    def _cut(self) -> list[_Waiting]:
        """The first records that make a batch; a record larger than a batch is one of its own."""
        size = count = 0
        for waiting in self._waiting:
            if count and size + waiting.size_bytes > self._options.batch_bytes:
                break
            size += waiting.size_bytes
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        self._waiting_bytes -= size
        if not self._waiting:
            self._arrived.clear()
        if self._waiting_bytes < self._options.batch_bytes:
            self._due.clear()
        return batch

    async def _deliver(self, batch: list[_Waiting]) -> None:
        try:
            base_offset = await self._send_in_time(batch)
        except BatchTooLarge as problem:
            if len(batch) == 1:
                self._settle(batch, problem)
                return
            # The broker took none of it, so the halves may go under the sequences that the whole had.
            middle = len(batch) // 2
            await self._deliver(batch[:middle])
            await self._deliver(batch[middle:])
        except StreamHouseError as problem:
            # Whether the broker has the batch is not known, so its sequences are burnt: the next has a new identity.
            if self._options.idempotent:
                self._identity = None
            self._settle(batch, problem)
        else:
            self._next_sequence = (self._next_sequence + len(batch)) % _SEQUENCES
            self._settle(batch, base_offset)

    async def _send_in_time(self, batch: list[_Waiting]) -> int | None:
        """The first record's offset. Every try sends the same bytes, by which the broker knows a repetition."""
        encoded: bytes | None = None

        async def attempt() -> int | None:
            nonlocal encoded
            if self._identity is None:
                self._identity, self._next_sequence = await self._new_identity(), 0
            if encoded is None:
                encoded = self._encode(batch, self._identity)
            return await self._produce(encoded)

        return await self._cluster.retrying(attempt, topic=self._topic, timeout_ms=self._options.delivery_timeout_ms)

    async def _new_identity(self) -> _Identity:
        broker = await self._cluster.leader(self._topic, self._partition)
        request = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        response = await broker.call(init_producer_id, request, timeout_ms=self._options.request_timeout_ms)
        raise_for(response.error_code, "asking for a producer id")
        return _Identity(response.producer_id, response.producer_epoch)

    def _encode(self, batch: list[_Waiting], identity: _Identity) -> bytes:
        return encode_records(
            [waiting.record for waiting in batch],
            codec=self._options.codec,
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=self._next_sequence if self._options.idempotent else -1,
        )

    async def _produce(self, encoded: bytes) -> int | None:
        leader = await self._cluster.leader(self._topic, self._partition)
        partition = produce.PartitionProduceData(index=self._partition, records=encoded)
        request = produce.ProduceRequest(
            acks=self._options.acks,
            timeout_ms=self._options.request_timeout_ms,
            topic_data=[produce.TopicProduceData(name=self._topic, partition_data=[partition])],
        )
        if self._options.acks is Acks.NONE:
            await leader.send_unanswered(produce, request, max_version=_MAX_PRODUCE_VERSION)
            return None
        response = await leader.call(
            produce, request, max_version=_MAX_PRODUCE_VERSION, timeout_ms=self._options.request_timeout_ms
        )
        return self._read_offset(response)

    def _read_offset(self, response: produce.ProduceResponse) -> int | None:
        place = f"producing to {self._topic}/{self._partition}"
        for topic in response.responses:
            for partition in topic.partition_responses:
                if partition.index == self._partition:
                    if partition.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                        return None  # stored by an earlier try, too long ago for the broker to know where
                    raise_for(partition.error_code, place, partition.error_message)
                    return partition.base_offset if partition.base_offset >= 0 else None
        raise error_for(ErrorCode.UNKNOWN_SERVER_ERROR, f"{place}: the answer does not mention the partition")

    def _settle(self, batch: list[_Waiting], outcome: int | StreamHouseError | None) -> None:
        for index, waiting in enumerate(batch):
            if waiting.delivered.done():
                continue
            if isinstance(outcome, StreamHouseError):
                waiting.delivered.set_exception(outcome)
            else:
                offset = None if outcome is None else outcome + index
                waiting.delivered.set_result(Delivered(topic=self._topic, partition=self._partition, offset=offset))
        self._on_settled(sum(waiting.size_bytes for waiting in batch))
