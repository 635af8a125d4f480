"""Topics with segments and WAL objects, written through the stores as agents do it."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

from log_parts.batches import real
from streamhouse.format.batch import place
from streamhouse.format.object_keys import segment_key, wal_object_key
from streamhouse.format.segment import encode_segment
from streamhouse.format.wal_object import BatchRun, encode_wal_object
from streamhouse.metadata.store import Lease, MetadataStore, SegmentCommit, SegmentRow
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.names import TopicPartition
from streamhouse.objects.store import ObjectStore

TTL_MS = 60_000


class StoredLogs:
    """Offsets go on where the partition ends; each record is a batch of its own."""

    def __init__(self, metadata: MetadataStore, objects: ObjectStore) -> None:
        self.metadata = metadata
        self.objects = objects

    async def create(self, topic: str = "orders", partitions: int = 1) -> list[TopicPartition]:
        made = await self.metadata.create_topic(topic, uuid4(), partitions, {})
        return [TopicPartition(made.topic_id, number) for number in range(partitions)]

    async def lead(self, partition: TopicPartition, agent_id: str = "a1") -> Lease:
        (lease,) = await self.metadata.acquire_leases(agent_id, [partition], TTL_MS)
        assert lease is not None
        return lease

    async def add_segment(self, lease: Lease, records: int = 3, *, base_offset: int | None = None) -> SegmentRow:
        partition = lease.partition
        if base_offset is None:
            base_offset = (await self.ends(partition))[0]
        encoded = encode_segment(_batches(lease, base_offset, records), epoch=lease.epoch)
        key = segment_key(partition.topic_id, partition.partition, base_offset, lease.epoch, uuid4())
        await self.objects.create(key, encoded.parts)
        row = SegmentRow(
            base_offset=encoded.base_offset,
            end_offset=encoded.end_offset,
            record_count=encoded.record_count,
            size_bytes=encoded.size_bytes,
            min_timestamp_ms=encoded.min_timestamp_ms,
            max_timestamp_ms=encoded.max_timestamp_ms,
            epoch=lease.epoch,
            object_key=key,
            checksum=encoded.checksum,
        )
        commit = SegmentCommit(
            partition=partition,
            agent_id=lease.agent_id,
            epoch=lease.epoch,
            commit_id=uuid4(),
            segment=row,
            producer_state=b"",
        )
        assert await self.metadata.commit_segments([commit]) == [None]
        return row

    async def add_wal_object(self, *leases: Lease, records: int = 3) -> str:
        """One object with a range for each of the leases."""
        key = wal_object_key(leases[0].agent_id, 1_750_000_000_000, uuid4())
        runs = []
        for lease in leases:
            base_offset = (await self.ends(lease.partition))[1]
            batches = _batches(lease, base_offset, records)
            runs.append(BatchRun(lease.partition, lease.epoch, base_offset, base_offset + records, batches))
        encoded = encode_wal_object(runs)
        await self.objects.create(key, encoded.parts)
        ranges = tuple(WalRange(**entry._asdict(), object_key=key) for entry in encoded.entries)
        commit = WalCommit(
            object_key=key,
            commit_id=uuid4(),
            agent_id=leases[0].agent_id,
            size_bytes=encoded.size_bytes,
            ranges=ranges,
        )
        assert await self.metadata.commit_wal_objects([commit]) == [[None] * len(leases)]
        return key

    async def ends(self, partition: TopicPartition) -> tuple[int, int]:
        """Committed and durable."""
        (row,) = await self.metadata.load_partitions([partition])
        return row.next_offset, row.durable_end

    async def replace_object(self, key: str, content: bytes) -> None:
        await self.objects.delete([key])
        await self.objects.create(key, [content])


def execute(database: Path, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Behind the store's back, and past its foreign keys."""
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
        return connection.execute(sql, values).fetchall()


def _batches(lease: Lease, base_offset: int, count: int) -> list[memoryview]:
    batches = []
    for offset in range(base_offset, base_offset + count):
        batch = real(b"value %d" % offset)
        place(batch, 0, offset, lease.epoch)
        batches.append(batch)
    return batches
