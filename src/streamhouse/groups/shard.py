"""The shard of a group in the store, under the lease that this agent holds of it.

Every change is one transaction that checks the lease. Besides, nothing is changed, and no group answers from memory,
once the lease may have run out: another coordinator may know better by then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from streamhouse.metadata.groups import CommittedOffset, CoordinatorStore, GroupRow, ShardLease
from streamhouse.model.errors import StaleEpoch
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock


class LeasedShard:
    def __init__(self, store: CoordinatorStore, clock: Clock, lease: ShardLease, until_ms: int) -> None:
        self._store = store
        self._clock = clock
        self.lease = lease
        self._until_ms = until_ms

    # --- the lease ---

    @property
    def is_live(self) -> bool:
        """Whether nobody else can have the lease, by the clock that only goes forward."""
        return self._clock.monotonic_ms() < self._until_ms

    def check_live(self) -> None:
        if not self.is_live:
            raise StaleEpoch(f"the lease of group shard {self.lease.shard} has run out")

    def extend(self, lease: ShardLease, until_ms: int) -> None:
        self.lease = lease
        self._until_ms = until_ms

    def lapse(self) -> None:
        """The lease is known to be lost."""
        self._until_ms = self._clock.monotonic_ms()

    @contextmanager
    def _change(self) -> Iterator[ShardLease]:
        self.check_live()
        lease = self.lease
        try:
            yield lease
        except StaleEpoch:
            # The store knows better than our clock, unless the lease was taken again in the meantime.
            if lease.epoch == self.lease.epoch:
                self.lapse()
            raise

    # --- what is stored ---

    async def load(self, group_id: str) -> GroupRow | None:
        return next((row for row in await self.load_all() if row.group_id == group_id), None)

    async def load_all(self) -> list[GroupRow]:
        return await self._store.load_groups(self.lease.shard)

    async def save(self, row: GroupRow) -> None:
        with self._change() as lease:
            await self._store.save_group(lease, row)

    async def commit(
        self, group_id: str, generation: int | None, offsets: Mapping[TopicPartition, CommittedOffset]
    ) -> dict[TopicPartition, Exception | None]:
        with self._change() as lease:
            return await self._store.commit_group_offsets(lease, group_id, generation, offsets)

    async def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Exception | None]:
        with self._change() as lease:
            return await self._store.delete_group_offsets(lease, group_id, partitions)

    async def delete(self, group_id: str) -> None:
        with self._change() as lease:
            await self._store.delete_group(lease, group_id)

    async def expire(self, retention_ms: int) -> int:
        with self._change() as lease:
            return await self._store.expire_group_offsets(lease, retention_ms)
