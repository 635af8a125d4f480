"""Who may change a group and what of it may be changed: decided on what a transaction read under its locks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from streamhouse.core.placement.shards import SHARD_COUNT, shard_of
from streamhouse.metadata.checks import check_committed_offset, check_text
from streamhouse.metadata.groups import CommittedOffset, GroupRow, ShardLease
from streamhouse.model.errors import InvalidInput, NotFound, StaleEpoch, StaleGeneration
from streamhouse.model.names import TopicPartition

_PROTOCOLS = ("classic", "consumer", "")
_INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatedShard:
    """A shard's lease as it is now."""

    leader_agent_id: str
    epoch: int
    lease_is_live: bool


def check_shards(shards: Sequence[int]) -> None:
    for shard in shards:
        if not 0 <= shard < SHARD_COUNT:
            raise InvalidInput(f"{shard} is not one of the {SHARD_COUNT} coordinator shards")


def check_covered(lease: ShardLease, group_id: str) -> None:
    """A lease allows nothing in the shards of other coordinators."""
    check_text("group id", group_id)
    if shard_of(group_id) != lease.shard:
        raise InvalidInput(f"group {group_id!r} is of shard {shard_of(group_id)}, and the lease is of {lease.shard}")


def check_group(lease: ShardLease, row: GroupRow) -> None:
    check_covered(lease, row.group_id)
    check_text("protocol type", row.protocol_type)
    if row.protocol not in _PROTOCOLS:
        raise InvalidInput(f"{row.protocol[:100]!r} is not a group protocol")
    if not 0 <= row.generation <= _INT32_MAX:
        raise InvalidInput(f"{row.generation} is not a generation")


def check_retention(retention_ms: int) -> None:
    if retention_ms < 0:
        raise InvalidInput(f"offsets cannot be kept for {retention_ms} ms")


def require_coordinator(shard: CoordinatedShard | None, lease: ShardLease) -> None:
    """An expired lease is nobody's, also while nobody else has taken it."""
    coordinator = "nobody"
    if shard is not None and shard.lease_is_live:
        if (shard.leader_agent_id, shard.epoch) == (lease.agent_id, lease.epoch):
            return
        coordinator = f"{shard.leader_agent_id!r} at epoch {shard.epoch}"
    raise StaleEpoch(
        f"{lease.agent_id!r} at epoch {lease.epoch} does not coordinate shard {lease.shard}; {coordinator} does"
    )


def require_generation(group_id: str, stored: int | None, expected: int | None) -> None:
    if expected is None or stored == expected:
        return
    current = "there is no such group" if stored is None else f"its generation is {stored}"
    raise StaleGeneration(f"{expected} is not the generation of group {group_id!r}: {current}")


def require_group(group_id: str, is_there: object) -> None:
    if not is_there:
        raise NotFound(f"no group {group_id!r}")


def generation_went_back(row: GroupRow) -> InvalidInput:
    return InvalidInput(f"group {row.group_id!r} is past generation {row.generation}, and never goes back")


def judge_offsets(
    offsets: Mapping[TopicPartition, CommittedOffset], existing: Collection[TopicPartition]
) -> dict[TopicPartition, Exception | None]:
    """Each on its own, in the order given: None for those to be stored."""
    return {partition: _offset_problem(partition, offset, existing) for partition, offset in offsets.items()}


def judge_partitions(
    partitions: Sequence[TopicPartition], existing: Collection[TopicPartition]
) -> dict[TopicPartition, Exception | None]:
    return {partition: _partition_problem(partition, existing) for partition in partitions}


def _offset_problem(
    partition: TopicPartition, offset: CommittedOffset, existing: Collection[TopicPartition]
) -> Exception | None:
    try:
        check_committed_offset(offset)
    except InvalidInput as problem:
        return problem
    if not -1 <= offset.leader_epoch <= _INT32_MAX:
        return InvalidInput(f"{offset.leader_epoch} is not a leader epoch")
    return _partition_problem(partition, existing)


def _partition_problem(partition: TopicPartition, existing: Collection[TopicPartition]) -> Exception | None:
    return None if partition in existing else NotFound(f"no partition {partition}")
