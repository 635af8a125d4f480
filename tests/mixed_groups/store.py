"""A model of the store for one coordinator at a time: every change checks the lease, and takes its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from streamhouse.core.placement.shards import shard_of
from streamhouse.metadata.groups import CommittedOffset, GroupRow, ShardLease
from streamhouse.model.errors import StaleEpoch, StaleGeneration
from streamhouse.model.names import TopicPartition

if TYPE_CHECKING:
    from mixed_groups.simulation import Simulation

_FOR_EVER_MS = 2**60


class ModelStore:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._epoch = 0
        self.row: GroupRow | None = None
        self.kinds: list[str] = []
        self.offsets: dict[TopicPartition, int] = {}

    async def acquire_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> list[ShardLease | None]:
        self._epoch += 1
        return [
            ShardLease(shard=shard, agent_id=agent_id, epoch=self._epoch, expires_at_ms=_FOR_EVER_MS)
            for shard in shards
        ]

    async def load_groups(self, shard: int) -> list[GroupRow]:
        await self._simulation.pass_time()
        return [] if self.row is None or shard_of(self.row.group_id) != shard else [self.row]

    async def save_group(self, lease: ShardLease, row: GroupRow) -> None:
        await self._simulation.pass_time()
        self._check(lease)
        if self.row is not None:
            assert row.generation >= self.row.generation, "a generation went back"
        self.row = row
        if self.kinds[-1:] != [row.protocol]:
            self.kinds.append(row.protocol)
        await self._simulation.pass_time()

    async def commit_group_offsets(
        self,
        lease: ShardLease,
        group_id: str,
        expected_generation: int | None,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, Exception | None]:
        await self._simulation.pass_time()
        self._check(lease)
        if self.row is None or self.row.generation != expected_generation:
            raise StaleGeneration("of another generation")
        for partition, committed in offsets.items():
            before = self.offsets.get(partition, 0)
            assert committed.offset >= before, f"{partition} went back from {before} to {committed.offset}"
            self.offsets[partition] = committed.offset
        return dict.fromkeys(offsets)

    async def fetch_group_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]:
        await self._simulation.pass_time()
        return {
            partition: CommittedOffset(offset=offset, leader_epoch=-1, metadata="")
            for partition, offset in self.offsets.items()
        }

    def _check(self, lease: ShardLease) -> None:
        if lease.epoch != self._epoch:
            raise StaleEpoch("the lease is another's")
