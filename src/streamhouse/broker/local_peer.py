"""This node as its peers see it: the partitions that it leads, and no others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from uuid import UUID

from streamhouse.broker.broker import Broker
from streamhouse.broker.fetch import PartitionRead
from streamhouse.broker.produce import produce
from streamhouse.client.peer import (
    ANY_EPOCH,
    EARLIEST,
    LATEST,
    Fetched,
    FoundOffset,
    NewSegment,
    NodeWal,
    NodeWork,
    Produced,
)
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.store import SegmentRow
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import InvalidInput, NotLeader, OutcomeUnknown, StaleEpoch, Unavailable
from streamhouse.model.names import TopicPartition

_LARGEST_REPLY_BYTES = 16 * 1024 * 1024


class LocalPeer:
    """A `Peer` without a network between."""

    def __init__(
        self,
        broker: Broker,
        *,
        flush: Callable[[PartitionLeader], Awaitable[None]],
        nudge_transfers: Callable[[], None],
        work: Callable[[], NodeWork],
        wal: Callable[[], NodeWal],
    ) -> None:
        """`flush` uploads what a leader has; `nudge_transfers` wakes whoever looks at them; `work` tells what this node
        does, `wal` what its write-ahead logs hold."""
        self._broker = broker
        self._flush = flush
        self._nudge_transfers = nudge_transfers
        self._work = work
        self._wal = wal

    async def produce(
        self,
        partition: TopicPartition,
        batch: Buffer,
        *,
        leader_epoch: int = ANY_EPOCH,
        is_admitted: bool = False,
        timeout_ms: int,
    ) -> Produced:
        leader = self._leader(partition)
        _check_epoch(leader, leader_epoch)
        base_offset, append_time_ms = await produce(
            self._broker, leader, batch, is_admitted=is_admitted, timeout_ms=timeout_ms
        )
        return Produced(base_offset=base_offset, append_time_ms=append_time_ms, leader_epoch=leader.epoch)

    async def fetch(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int,
        min_bytes: int = 0,
        max_wait_ms: int = 0,
        timeout_ms: int,
    ) -> Fetched:
        leader = self._leader(partition)
        max_bytes = min(max_bytes, _LARGEST_REPLY_BYTES)
        read = PartitionRead(leader, offset, max_bytes)
        fetcher = self._broker.fetcher
        try:
            async with asyncio.timeout((max_wait_ms + timeout_ms) / 1000):
                if max_wait_ms > 0:
                    await fetcher.wait([read], min(min_bytes, max_bytes), max_bytes, max_wait_ms)
                else:
                    await fetcher.read([read], max_bytes)
        except TimeoutError:
            raise Unavailable(f"{_name(leader)} could not be read within {timeout_ms} ms") from None
        if read.problem is not None:
            raise read.problem
        return Fetched(
            batches=b"".join(read.parts),
            high_watermark=leader.high_watermark,
            log_start_offset=leader.log_start_offset,
            leader_epoch=leader.epoch,
        )

    async def offset_at(self, partition: TopicPartition, timestamp_ms: int, *, timeout_ms: int) -> FoundOffset:
        leader = self._leader(partition)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                offset = await self._offset_at(leader, timestamp_ms)
        except TimeoutError:
            raise Unavailable(f"{_name(leader)} could not be searched within {timeout_ms} ms") from None
        # Afterwards, for what was found must not be beyond the end that is told with it.
        if leader.removed or not leader.knows_the_end:
            raise NotLeader(f"another agent may lead {_name(leader)} by now")
        return FoundOffset(
            offset=offset,
            log_start_offset=leader.log_start_offset,
            committed_end=leader.committed_end,
            high_watermark=leader.high_watermark,
            uncommitted_bytes=leader.buffered_bytes,
            leader_epoch=leader.epoch,
        )

    async def _offset_at(self, leader: PartitionLeader, timestamp_ms: int) -> int | None:
        if timestamp_ms == LATEST:
            return leader.high_watermark
        if timestamp_ms == EARLIEST:
            return leader.log_start_offset
        if timestamp_ms < 0:
            raise InvalidInput(f"{timestamp_ms} is not a time", hint="milliseconds since 1970, -1 (end) or -2 (start)")
        found = await self._broker.offset_at(leader, timestamp_ms)
        return None if found is None else found[0]

    async def replace_segments(
        self,
        partition: TopicPartition,
        commit_id: UUID,
        removed: Sequence[str],
        added: Sequence[NewSegment],
        *,
        timeout_ms: int,
    ) -> None:
        leader = self._leader(partition)
        rows = [SegmentRow(**asdict(segment)) for segment in added]
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._broker.replace_segments(leader, commit_id, removed, rows)
        except TimeoutError:
            raise OutcomeUnknown(
                f"segments of {_name(leader)} were not replaced within {timeout_ms} ms", hint="try again"
            ) from None

    async def flush(self, partition: TopicPartition, *, timeout_ms: int) -> int:
        leader = self._leader(partition)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._flush(leader)
        except TimeoutError:
            raise Unavailable(f"{_name(leader)} could not be uploaded within {timeout_ms} ms") from None
        if leader.removed:
            raise NotLeader(f"this agent no longer leads {_name(leader)}")
        return leader.committed_end

    async def nudge_transfers(self, *, timeout_ms: int) -> None:
        self._nudge_transfers()

    async def work(self, *, timeout_ms: int) -> NodeWork:
        return self._work()

    async def wal(self, *, timeout_ms: int) -> NodeWal:
        return self._wal()

    def _leader(self, partition: TopicPartition) -> PartitionLeader:
        """The caller knows the partition from the metadata store. If this node has not heard of it yet, then all that
        follows is that it does not lead it yet."""
        topic = self._broker.topics.find_id(partition.topic_id)
        if topic is None or partition.partition >= topic.partition_count:
            raise NotLeader(f"this agent does not know {partition}, and does not lead it")
        return self._broker.topics.leader(topic, partition.partition)


def _check_epoch(leader: PartitionLeader, epoch: int) -> None:
    if epoch == ANY_EPOCH or epoch == leader.epoch:
        return
    if epoch < leader.epoch:
        raise StaleEpoch(f"epoch {epoch} of {_name(leader)} has ended, it is {leader.epoch} now")
    raise NotLeader(f"this agent leads {_name(leader)} in epoch {leader.epoch}, which {epoch} has followed")


def _name(leader: PartitionLeader) -> str:
    return f"{leader.topic}/{leader.partition.partition}"
