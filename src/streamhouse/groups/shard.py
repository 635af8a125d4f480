"""The shard of a group in the store, under the lease that this agent holds of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamhouse.metadata.groups import CommittedOffset, CoordinatorStore, GroupRow, ShardLease
from streamhouse.model.names import TopicPartition


class LeasedShard:
    def __init__(self, store: CoordinatorStore, lease: ShardLease) -> None:
        self._store = store
        self.lease = lease

    async def save(self, row: GroupRow) -> None:
        await self._store.save_group(self.lease, row)

    async def load(self, group_id: str) -> GroupRow | None:
        rows = await self._store.load_groups(self.lease.shard)
        return next((row for row in rows if row.group_id == group_id), None)

    async def load_all(self) -> list[GroupRow]:
        return await self._store.load_groups(self.lease.shard)

    async def commit(
        self, group_id: str, generation: int | None, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, Exception | None]:
        return await self._store.commit_group_offsets(self.lease, group_id, generation, offsets)

    async def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Exception | None]:
        return await self._store.delete_group_offsets(self.lease, group_id, partitions)

    async def delete(self, group_id: str) -> None:
        await self._store.delete_group(self.lease, group_id)

    async def expire(self, retention_ms: int) -> int:
        return await self._store.expire_group_offsets(self.lease, retention_ms)
