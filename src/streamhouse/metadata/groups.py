"""What consumer groups ask of the metadata store: coordinators are leased shards, and every change of a group is one
transaction that checks the lease of its shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streamhouse.model.names import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """`offset` is what the client committed. Below 0 it is kept and given back, and says that nothing is committed."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLease:
    """Who coordinates the groups of a shard (`core.placement.shards`)."""

    shard: int
    agent_id: str
    epoch: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A group as its coordinator left it. `protocol` is "classic", "consumer", or "" for a simple group: one that only
    commits offsets and never has members. `state` is the coordinator's own snapshot."""

    group_id: str
    protocol: str
    protocol_type: str
    generation: int
    state: bytes
    empty_since_ms: int | None


class ShardStore(Protocol):
    """Leases of coordinator shards, by the rules of the leases of partitions."""

    async def acquire_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> list[ShardLease | None]:
        """In the order asked; None where another agent's lease is live. Each grant is a new epoch, also when the same
        agent (a new process of it) takes it again. Once it is granted, no change under an older epoch lands."""

    async def renew_shards(self, agent_id: str, leases: Sequence[ShardLease], ttl_ms: int) -> list[ShardLease | None]:
        """In the order asked: extends those still held at that epoch and not expired; None for the others. Epochs
        stay."""

    async def release_shards(self, agent_id: str, leases: Sequence[ShardLease]) -> None:
        """Expire now, keeping the epochs. Leases of others are left alone."""

    async def claim_shards(self, agent_id: str, shards: Sequence[int], ttl_ms: int) -> None:
        """Ask others for the shards that are not this agent's; that counts for so long, or until somebody else asks or
        somebody is granted the lease."""


class GroupStore(Protocol):
    """Groups and their offsets. What takes a lease raises StaleEpoch, and changes nothing, unless that lease is live
    and its agent's at that epoch; and InvalidInput if the group is not of its shard."""

    async def load_groups(self, shard: int) -> list[GroupRow]:
        """By group id."""

    async def list_groups(self) -> list[GroupRow]:
        """Of all shards, by group id, without their `state`."""

    async def save_group(self, lease: ShardLease, row: GroupRow) -> None:
        """Insert or replace; InvalidInput if the stored generation is newer."""

    async def delete_group(self, lease: ShardLease, group_id: str) -> None:
        """The group and all its offsets; NotFound if there is none."""

    async def commit_group_offsets(
        self,
        lease: ShardLease,
        group_id: str,
        expected_generation: int | None,
        offsets: Mapping[TopicPartition, CommittedOffset],
    ) -> dict[TopicPartition, Exception | None]:
        """NotFound for partitions that do not exist and InvalidInput for what cannot be stored; the others are stored,
        at the database's time. StaleGeneration, and nothing is stored, if a generation is expected and the group is not
        stored with exactly that one. If none is expected, a group that is not there becomes a simple one."""

    async def fetch_group_offsets(self, group_id: str) -> dict[TopicPartition, CommittedOffset]: ...

    async def delete_group_offsets(
        self, lease: ShardLease, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, Exception | None]:
        """NotFound for partitions that do not exist; None for the others, whether or not there was an offset. NotFound
        is raised if the group itself is not there."""

    async def expire_group_offsets(self, lease: ShardLease, retention_ms: int) -> int:
        """Drop, in the groups of the shard that have been empty for that long (simple ones always are), the offsets
        that are that old, and those of the groups that are left without any; returns how many offsets went."""


class CoordinatorStore(ShardStore, GroupStore, Protocol):
    """All that a group coordinator needs."""
