"""A peer that answers what a test says, and a gRPC port that puts it on the network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from streamhouse.client.internal import PeerClient
from streamhouse.client.peer import (
    ANY_EPOCH,
    Fetched,
    FoundOffset,
    NewSegment,
    NodeWal,
    NodeWork,
    Peer,
    Produced,
    WalFile,
    WalObject,
    WalOnDisk,
)
from streamhouse.model.buffer import Buffer
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.server.grpc.internal import InternalService
from streamhouse.server.grpc.listener import ENVELOPE_BYTES, GrpcListener

PARTITION = TopicPartition(UUID(int=7), 3)
HUNG_MS = 60_000
"""Nothing takes this long unless it hangs."""
PRODUCED = Produced(base_offset=41, append_time_ms=-1, leader_epoch=5)
FETCHED = Fetched(batches=b"batches", high_watermark=9, log_start_offset=2, leader_epoch=5)

FOUND = FoundOffset(
    offset=6, log_start_offset=2, committed_end=7, high_watermark=9, uncommitted_bytes=300, leader_epoch=5
)


NEW_SEGMENT = NewSegment(
    base_offset=3,
    end_offset=2**40,
    record_count=7,
    size_bytes=2**33,
    min_timestamp_ms=-1,
    max_timestamp_ms=2**41,
    epoch=2**31 - 1,
    object_key="segments/x",
    checksum=2**32 - 1,
)


WORK = NodeWork(
    records_in=1,
    bytes_in=2**40,
    records_out=3,
    bytes_out=4,
    produce_p50_ms=None,
    produce_p99_ms=0.25,
    buffered_bytes=5,
    buffer_limit_bytes=6,
    ends={PARTITION: 7},
    wal_problem="No space left on device",
    oldest_upload_ms=8,
)
WAL = NodeWal(
    disk=WalOnDisk(
        files=[WalFile(name="1.wal", size_bytes=2**40, is_current=True, owner_count=3)],
        unsynced_batches=1,
        unsynced_bytes=2,
        problem="No space left on device",
    ),
    gathered_batches=3,
    gathered_bytes=4,
    in_flight=[WalObject(key="", size_bytes=5, partition_count=6, is_stored=False)],
    uncovered_records=7,
    uncovered_bytes=8,
)


@dataclass
class ScriptedPeer:
    """Notes what it is asked, does `first` and then answers."""

    first: Callable[[], Awaitable[None]] | None = None
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cancelled: int = 0
    fetched: Fetched = FETCHED
    found: FoundOffset = FOUND

    async def produce(
        self,
        partition: TopicPartition,
        batch: Buffer,
        *,
        leader_epoch: int = ANY_EPOCH,
        is_admitted: bool = False,
        timeout_ms: int,
    ) -> Produced:
        await self._asked(
            "produce",
            partition=partition,
            batch=bytes(batch),
            leader_epoch=leader_epoch,
            is_admitted=is_admitted,
            timeout_ms=timeout_ms,
        )
        return PRODUCED

    async def fetch(self, partition: TopicPartition, offset: int, **options: int) -> Fetched:
        await self._asked("fetch", partition=partition, offset=offset, **options)
        return self.fetched

    async def offset_at(self, partition: TopicPartition, timestamp_ms: int, *, timeout_ms: int) -> FoundOffset:
        await self._asked("offset_at", partition=partition, timestamp_ms=timestamp_ms, timeout_ms=timeout_ms)
        return self.found

    async def replace_segments(
        self,
        partition: TopicPartition,
        commit_id: UUID,
        removed: Sequence[str],
        added: Sequence[NewSegment],
        *,
        timeout_ms: int,
    ) -> None:
        await self._asked("replace_segments", partition=partition, commit_id=commit_id, removed=removed, added=added)

    async def flush(self, partition: TopicPartition, *, timeout_ms: int) -> int:
        await self._asked("flush", partition=partition, timeout_ms=timeout_ms)
        return 12

    async def nudge_transfers(self, *, timeout_ms: int) -> None:
        await self._asked("nudge_transfers", timeout_ms=timeout_ms)

    async def work(self, *, timeout_ms: int) -> NodeWork:
        await self._asked("work", timeout_ms=timeout_ms)
        return WORK

    async def wal(self, *, timeout_ms: int) -> NodeWal:
        await self._asked("wal", timeout_ms=timeout_ms)
        return WAL

    async def close(self) -> None:
        await self._asked("close")

    async def _asked(self, what: str, **options: Any) -> None:
        self.asked.append((what, options))
        if self.first is not None:
            try:
                await self.first()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise


def raises(problem: Exception) -> Callable[[], Awaitable[None]]:
    async def first() -> None:
        raise problem

    return first


async def forever() -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def listening(peer: Peer, *, max_calls: int = 100, port: int = 0, **settings: Any) -> AsyncIterator[int]:
    """The port on 127.0.0.1 at which the peer is asked."""
    listener = GrpcListener(Settings(**settings), [InternalService(peer).handler()], max_calls=max_calls)
    _, bound_port = await listener.start("127.0.0.1", port)
    try:
        yield bound_port
    finally:
        await listener.close()


@asynccontextmanager
async def connected(port: int, **options: Any) -> AsyncIterator[PeerClient]:
    limits = {"max_message_bytes": 2**20 + ENVELOPE_BYTES}
    client = PeerClient(f"127.0.0.1:{port}", **(limits | options))
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def asking(peer: Peer, **settings: Any) -> AsyncIterator[PeerClient]:
    """A client of the peer, with a network between."""
    async with listening(peer, **settings) as port, connected(port) as client:
        yield client
