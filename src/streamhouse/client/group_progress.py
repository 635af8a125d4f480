"""How far a group is in each partition, and where a reset would move it: what its committed offsets and the logs' ends
say together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from streamhouse.client.admin import Admin
from streamhouse.client.groups_admin import (
    GroupDescription,
    GroupMember,
    GroupPartition,
    GroupsAdmin,
    group_in_use,
)
from streamhouse.core.groups.offset_reset import PartitionPosition, ResetKind, ResetTarget, choose_offset, lag
from streamhouse.model.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a group is in one partition, and which member reads it."""

    partition: GroupPartition
    committed_offset: int | None
    end_offset: int | None
    member: GroupMember | None

    @property
    def lag(self) -> int | None:
        return lag(self.committed_offset, self.end_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An offset before and after; `new_offset` is None where there was nothing to shift from."""

    partition: GroupPartition
    old_offset: int | None
    new_offset: int | None


async def describe_progress(
    groups: GroupsAdmin, admin: Admin, group_id: str
) -> tuple[GroupDescription, list[Progress]]:
    """NotFound if there is no such group; else how far it is wherever it committed or is assigned something."""
    description = await groups.describe_group(group_id)
    committed = await groups.committed_offsets(group_id)
    return description, await measure(description, committed, admin.latest_offsets)


async def reset_group(
    groups: GroupsAdmin, admin: Admin, group_id: str, topics: Iterable[str], target: ResetTarget, *, dry_run: bool
) -> list[Move]:
    """Move a group without members, in every partition of the topics; without topics, of all that it committed."""
    await _refuse_members(groups, group_id)
    committed = await groups.committed_offsets(group_id)
    wanted = dict.fromkeys(topics) or dict.fromkeys(partition.topic for partition in committed)
    if not wanted:
        raise InvalidInput(f"group {group_id!r} has committed nothing", hint="name the topics to reset")
    moves = await _plan(admin, target, wanted, committed)
    changes = {move.partition: move.new_offset for move in moves if move.new_offset is not None}
    if changes and not dry_run:
        await groups.commit_offsets(group_id, changes)
    return moves


async def _refuse_members(groups: GroupsAdmin, group_id: str) -> None:
    """Before anything is shown: a dry run must not promise what the broker would refuse."""
    try:
        description = await groups.describe_group(group_id)
    except NotFound:
        return
    if description.members:
        raise group_in_use(group_id)


async def measure(
    description: GroupDescription,
    committed: Mapping[GroupPartition, int],
    ends_of: Callable[[str, Sequence[int]], Awaitable[Mapping[int, int]]],
) -> list[Progress]:
    """`ends_of` says where partitions of a topic end, or NotFound if it is no more."""
    owners = {partition: member for member in description.members for partition in member.partitions}
    by_topic: dict[str, list[GroupPartition]] = {}
    for partition in sorted({*committed, *owners}):
        by_topic.setdefault(partition.topic, []).append(partition)
    progress: list[Progress] = []
    for topic, partitions in by_topic.items():
        try:
            ends = await ends_of(topic, [partition.partition for partition in partitions])
        except NotFound:
            # Deleted while the group still holds offsets of it; that is worth showing, too.
            ends = {}
        progress += [
            Progress(
                partition=partition,
                committed_offset=committed.get(partition),
                end_offset=ends.get(partition.partition),
                member=owners.get(partition),
            )
            for partition in partitions
        ]
    return progress


async def _plan(
    admin: Admin, target: ResetTarget, topics: Iterable[str], committed: Mapping[GroupPartition, int]
) -> list[Move]:
    moves: list[Move] = []
    for topic in topics:
        indexes = range(await admin.partition_count(topic))
        starts = await admin.earliest_offsets(topic, indexes)
        ends = await admin.latest_offsets(topic, indexes)
        at_time = await admin.offsets_at(topic, indexes, target.value) if target.kind is ResetKind.TIME else {}
        for index in indexes:
            partition = GroupPartition(topic, index)
            position = PartitionPosition(
                start_offset=starts[index],
                end_offset=ends[index],
                committed_offset=committed.get(partition),
                offset_at_time=at_time.get(index),
            )
            moves.append(
                Move(
                    partition=partition,
                    old_offset=position.committed_offset,
                    new_offset=choose_offset(target, position),
                )
            )
    return moves
