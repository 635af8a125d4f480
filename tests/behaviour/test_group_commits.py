"""What every metadata store does with the offsets of groups: commits, deletions, expiry, and who comes first."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from behaviour.coordinators import (
    GROUP,
    acquire_shard,
    at,
    contents,
    coordinate,
    group,
    names_in_shard,
    pass_time,
    rival,
    until_waiting,
)
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind, PostgresKind, make_topic
from streamhouse.core.placement.shards import shard_of
from streamhouse.metadata.groups import GroupRow, ShardLease
from streamhouse.metadata.store import MetadataStore
from streamhouse.metadata.totals import GroupPosition
from streamhouse.model.errors import Fenced, InvalidInput, NotFound, StaleEpoch, StaleGeneration
from streamhouse.model.names import TopicPartition

RETENTION_MS = 1_000_000


async def offsets_of(store: MetadataStore, group_id: str = GROUP) -> dict[TopicPartition, int]:
    return {partition: found.offset for partition, found in (await store.fetch_group_offsets(group_id)).items()}


async def test_committed_offsets_are_fetched_by_group(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=4))
    answers = await metadata.commit_group_offsets(lease, GROUP, 4, {second: at(7), first: at(5, "note ü", 3)})
    assert answers == {second: None, first: None}
    fetched = await metadata.fetch_group_offsets(GROUP)
    assert list(fetched) == [first, second]
    assert (fetched[first].offset, fetched[first].leader_epoch, fetched[first].metadata) == (5, 3, "note ü")
    assert await metadata.fetch_group_offsets("other") == {}


async def test_the_time_of_a_commit_is_the_databases(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
    first = (await metadata.fetch_group_offsets(GROUP))[partition].committed_at_ms
    granted_at_ms = lease.expires_at_ms - TTL_MS
    assert granted_at_ms <= first < granted_at_ms + 60_000
    await pass_time(metadata_kind, 1000)
    aged = (await metadata.fetch_group_offsets(GROUP))[partition].committed_at_ms
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
    assert (await metadata.fetch_group_offsets(GROUP))[partition].committed_at_ms >= aged + 1000


async def test_a_later_commit_replaces_an_earlier_one_also_backwards(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    for offset in (5, 9, 2):
        await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(offset, str(offset), offset)})
    fetched = (await metadata.fetch_group_offsets(GROUP))[partition]
    assert (fetched.offset, fetched.metadata, fetched.leader_epoch) == (2, "2", 2)


async def test_a_repeated_commit_gives_the_same(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=4))
    for expected in (4, None):
        for _ in range(3):
            answers = await metadata.commit_group_offsets(lease, GROUP, expected, {first: at(5), second: at(6)})
            assert answers == {first: None, second: None}
            assert await offsets_of(metadata) == {first: 5, second: 6}
    assert await metadata.list_groups() == [group(generation=4)]


@pytest.mark.parametrize("expected", [0, 3, 5, 2**31 - 1, -1, 2**40])
async def test_a_commit_of_another_generation_is_refused_and_stores_nothing(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, expected: int
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=4))
    await metadata.commit_group_offsets(lease, GROUP, 4, {partition: at(1)})
    before = await contents(metadata_kind)
    with pytest.raises(StaleGeneration) as caught:
        await metadata.commit_group_offsets(lease, GROUP, expected, {partition: at(9)})
    assert isinstance(caught.value, Fenced)
    assert await contents(metadata_kind) == before


async def test_a_commit_of_a_generation_to_a_group_that_is_not_there_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    for expected in (0, 1):
        with pytest.raises(StaleGeneration):
            await metadata.commit_group_offsets(lease, GROUP, expected, {partition: at(9)})
    assert await metadata.list_groups() == []
    assert await offsets_of(metadata) == {}


async def test_the_first_commit_without_a_generation_makes_a_simple_group(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    for offset in (1, 2):
        await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(offset)})
    (row,) = await metadata.load_groups(lease.shard)
    assert row.empty_since_ms is not None
    assert row.empty_since_ms >= lease.expires_at_ms - TTL_MS
    assert row == GroupRow(
        group_id=GROUP,
        protocol="",
        protocol_type="",
        generation=0,
        state=b"",
        empty_since_ms=row.empty_since_ms,
    )


async def test_a_commit_without_a_generation_leaves_a_group_that_is_there_as_it_is(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=4, state=b"s", empty_since_ms=7))
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(3)})
    assert await metadata.load_groups(lease.shard) == [group(generation=4, state=b"s", empty_since_ms=7)]
    assert await offsets_of(metadata) == {partition: 3}


async def test_a_simple_group_may_get_members(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(3)})
    await metadata.save_group(lease, group(generation=1))
    assert await metadata.load_groups(lease.shard) == [group(generation=1)]
    assert await offsets_of(metadata) == {partition: 3}


async def test_a_partition_that_does_not_exist_is_told_and_the_others_are_stored(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    gone = TopicPartition(uuid4(), 0)
    beyond = TopicPartition(partition.topic_id, 1)
    answers = await metadata.commit_group_offsets(lease, GROUP, None, {gone: at(1), partition: at(2), beyond: at(3)})
    assert list(answers) == [gone, partition, beyond]
    assert [type(answer) for answer in answers.values()] == [NotFound, type(None), NotFound]
    assert await offsets_of(metadata) == {partition: 2}


async def test_an_offset_that_cannot_be_stored_is_told_and_the_others_are_stored(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 6)
    lease = await coordinate(metadata)
    wrong = [at(1, "\ud800"), at(-(2**63) - 1), at(2**63), at(1, leader_epoch=2**31), at(1, leader_epoch=-2)]
    offsets = dict(zip(partitions, [*wrong, at(2**63 - 1, leader_epoch=-1)], strict=True))
    answers = await metadata.commit_group_offsets(lease, GROUP, None, offsets)
    assert [type(answer) for answer in answers.values()] == [InvalidInput] * 5 + [type(None)]
    assert await offsets_of(metadata) == {partitions[5]: 2**63 - 1}


async def test_an_offset_below_0_is_kept_as_it_was_committed_and_is_no_position(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 4)
    lease = await coordinate(metadata)
    offsets = dict(zip(partitions, [-1, -2, -(2**63), 0], strict=True))
    answers = await metadata.commit_group_offsets(
        lease, GROUP, None, {each: at(offset) for each, offset in offsets.items()}
    )
    assert set(answers.values()) == {None}
    assert await offsets_of(metadata) == offsets
    position = GroupPosition(group_id=GROUP, partition=partitions[3], offset=0)
    assert await metadata.list_group_positions(100) == [position]


async def test_a_commit_that_stores_nothing_makes_no_group(metadata: MetadataStore) -> None:
    lease = await coordinate(metadata)
    assert await metadata.commit_group_offsets(lease, GROUP, None, {}) == {}
    (answer,) = (await metadata.commit_group_offsets(lease, GROUP, None, {TopicPartition(uuid4(), 0): at(1)})).values()
    assert isinstance(answer, NotFound)
    assert await metadata.list_groups() == []


async def test_a_thousand_partitions_are_committed_and_deleted_in_one_call_each(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 1000)
    lease = await coordinate(metadata)
    for shift in (0, 7):
        offsets = {partition: at(partition.partition + shift) for partition in partitions}
        answers = await metadata.commit_group_offsets(lease, GROUP, None, offsets)
        assert set(answers.values()) == {None}
        assert await offsets_of(metadata) == {partition: partition.partition + shift for partition in partitions}
    answers = await metadata.delete_group_offsets(lease, GROUP, partitions)
    assert (len(answers), set(answers.values())) == (1000, {None})
    assert await offsets_of(metadata) == {}


async def test_deleted_offsets_are_gone_and_the_others_stay(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    gone = TopicPartition(uuid4(), 0)
    deleted, other = names_in_shard(3, 2)
    lease = await acquire_shard(metadata, 3)
    for name in (deleted, other):
        await metadata.commit_group_offsets(lease, name, None, {first: at(1), second: at(2)})
    for _ in range(2):  # also those that have none any more
        answers = await metadata.delete_group_offsets(lease, deleted, [gone, first])
        assert list(answers) == [gone, first]
        assert [type(answer) for answer in answers.values()] == [NotFound, type(None)]
    assert await offsets_of(metadata, deleted) == {second: 2}
    assert await offsets_of(metadata, other) == {first: 1, second: 2}
    assert [row.group_id for row in await metadata.list_groups()] == sorted([deleted, other])


async def test_offsets_of_a_group_that_is_not_there_cannot_be_deleted(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    with pytest.raises(NotFound):
        await metadata.delete_group_offsets(lease, GROUP, [partition])


async def expire_at_last(store: MetadataStore, kind: MetadataStoreKind, lease: ShardLease) -> tuple[int, int]:
    """What expires a moment before the retention ends, and what after it."""
    await pass_time(kind, RETENTION_MS - 60_000)
    lease = await acquire_shard(store, lease.shard)
    early = await store.expire_group_offsets(lease, RETENTION_MS)
    await pass_time(kind, 60_000)
    lease = await acquire_shard(store, lease.shard)
    return early, await store.expire_group_offsets(lease, RETENTION_MS)


async def now_ms(store: MetadataStore) -> int:
    """The database's."""
    lease = await acquire_shard(store, 15, "clock")
    return lease.expires_at_ms - TTL_MS


async def test_an_empty_group_loses_its_offsets_and_then_its_row_when_both_are_old(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    first, second = await make_topic(metadata, 2)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(empty_since_ms=await now_ms(metadata)))
    await metadata.commit_group_offsets(lease, GROUP, 1, {first: at(1), second: at(2)})
    assert await expire_at_last(metadata, metadata_kind, lease) == (0, 2)
    assert await contents(metadata_kind) == [[], []]


async def test_a_simple_group_loses_its_offsets_by_their_age(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
    assert await expire_at_last(metadata, metadata_kind, lease) == (0, 1)
    assert await contents(metadata_kind) == [[], []]


async def test_a_simple_group_that_says_nothing_of_being_empty_is_empty_all_the_same(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(protocol="", protocol_type="", generation=0))
    await metadata.commit_group_offsets(lease, GROUP, 0, {partition: at(1)})
    assert await expire_at_last(metadata, metadata_kind, lease) == (0, 1)
    assert await contents(metadata_kind) == [[], []]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_group_with_members_keeps_the_oldest_offsets(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, protocol: str
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(protocol=protocol))
    await metadata.commit_group_offsets(lease, GROUP, 1, {partition: at(1)})
    await pass_time(metadata_kind, 100 * RETENTION_MS)
    assert await metadata.expire_group_offsets(await coordinate(metadata), RETENTION_MS) == 0
    assert await offsets_of(metadata) == {partition: 1}
    assert len(await metadata.list_groups()) == 1


async def test_a_group_that_became_empty_lately_keeps_old_offsets(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group())
    await metadata.commit_group_offsets(lease, GROUP, 1, {partition: at(1)})
    await pass_time(metadata_kind, RETENTION_MS)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(empty_since_ms=await now_ms(metadata)))
    assert await metadata.expire_group_offsets(lease, RETENTION_MS) == 0
    assert await offsets_of(metadata) == {partition: 1}
    assert await expire_at_last(metadata, metadata_kind, lease) == (0, 1)


async def test_a_young_offset_keeps_an_old_empty_group_and_only_the_old_ones_go(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    old, young = await make_topic(metadata, 2)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {old: at(1), young: at(2)})
    await pass_time(metadata_kind, RETENTION_MS)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {young: at(3)})
    assert await metadata.expire_group_offsets(lease, RETENTION_MS) == 1
    assert await offsets_of(metadata) == {young: 3}
    assert len(await metadata.list_groups()) == 1
    assert await expire_at_last(metadata, metadata_kind, lease) == (0, 1)
    assert await metadata.list_groups() == []


async def test_a_group_without_offsets_stays_until_it_has_been_empty_for_long(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
    await metadata.delete_topic(partition.topic_id)
    assert await offsets_of(metadata) == {}
    assert await metadata.expire_group_offsets(lease, RETENTION_MS) == 0
    assert len(await metadata.list_groups()) == 1
    assert await expire_at_last(metadata, metadata_kind, lease) == (0, 0)
    assert await metadata.list_groups() == []


async def test_only_the_groups_of_the_shard_expire(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    (partition,) = await make_topic(metadata)
    (ours,), (foreign,) = names_in_shard(3, 1), names_in_shard(4, 1)
    for name in (ours, foreign):
        await metadata.commit_group_offsets(await coordinate(metadata, name), name, None, {partition: at(1)})
    await pass_time(metadata_kind, RETENTION_MS)
    assert await metadata.expire_group_offsets(await coordinate(metadata, ours), RETENTION_MS) == 1
    assert await offsets_of(metadata, foreign) == {partition: 1}
    assert [row.group_id for row in await metadata.list_groups()] == [foreign]


async def test_offsets_are_kept_for_no_less_than_nothing(metadata: MetadataStore) -> None:
    with pytest.raises(InvalidInput):
        await metadata.expire_group_offsets(await coordinate(metadata), -1)


async def test_a_commit_that_meets_a_new_generation_on_its_way_waits_for_it_and_is_stale(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=4))
    await metadata.commit_group_offsets(lease, GROUP, 4, {partition: at(1)})
    async with rival(metadata_kind, f"UPDATE consumer_groups SET generation = 5 WHERE group_id = '{GROUP}'"):
        committing = asyncio.create_task(metadata.commit_group_offsets(lease, GROUP, 4, {partition: at(9)}))
        await until_waiting(metadata_kind, committing)
    with pytest.raises(StaleGeneration):
        await committing
    assert await offsets_of(metadata) == {partition: 1}


async def test_a_new_generation_that_is_undone_leaves_the_commit_to_the_old_one(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=4))
    async with rival(metadata_kind, "UPDATE consumer_groups SET generation = 5", end="ROLLBACK"):
        committing = asyncio.create_task(metadata.commit_group_offsets(lease, GROUP, 4, {partition: at(9)}))
        await until_waiting(metadata_kind, committing)
    assert await committing == {partition: None}
    assert await offsets_of(metadata) == {partition: 9}


async def test_a_commit_that_meets_a_takeover_on_its_way_waits_for_it_and_is_stale(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await coordinate(metadata)
    await metadata.commit_group_offsets(lease, GROUP, None, {partition: at(1)})
    shard = f"WHERE shard = {lease.shard}"
    takeover = [f"UPDATE coordinator_leases SET leader_agent_id = '{OTHER}', epoch = epoch + 1 {shard}"]
    if isinstance(metadata_kind, PostgresKind):
        takeover.insert(0, f"SELECT FROM coordinator_leases {shard} FOR UPDATE")  # as every grant does
    before = await contents(metadata_kind)
    async with rival(metadata_kind, *takeover):
        committing = asyncio.create_task(metadata.commit_group_offsets(lease, GROUP, None, {partition: at(9)}))
        await until_waiting(metadata_kind, committing)
    with pytest.raises(StaleEpoch):
        await committing
    assert await contents(metadata_kind) == before


async def test_of_commits_and_new_generations_at_once_no_stale_one_lands(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    """Each commit notes its generation as its offset, and the one of a generation that is over is not the last."""
    partitions = await make_topic(metadata, 5)
    lease = await coordinate(metadata)
    await metadata.save_group(lease, group(generation=0))

    async def commit(store: MetadataStore, generation: int) -> bool:
        try:
            await store.commit_group_offsets(lease, GROUP, generation, {p: at(generation) for p in partitions})
        except StaleGeneration:
            return False
        return True

    for generation in range(1, 16):
        landed_before, _, landed_after = await asyncio.gather(
            commit(other_process, generation - 1),
            metadata.save_group(lease, group(generation=generation)),
            commit(other_process, generation),
        )
        committed = set((await offsets_of(metadata)).values())
        if landed_after:
            assert committed == {generation}
        elif landed_before:
            assert committed == {generation - 1}
        assert not await commit(other_process, generation - 1)
        assert set((await offsets_of(metadata)).values()) == committed


async def test_first_commits_of_a_simple_group_at_once_are_all_stored(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 12)
    for name in names_in_shard(3, 3):
        lease = await coordinate(metadata, name)
        answers = await asyncio.gather(
            *(
                store.commit_group_offsets(lease, name, None, {partition: at(partition.partition)})
                for partition, store in zip(partitions, [metadata, other_process] * 6, strict=True)
            )
        )
        assert answers == [{partition: None} for partition in partitions]
        assert await offsets_of(metadata, name) == {partition: partition.partition for partition in partitions}


async def test_commits_deletions_and_expiry_of_one_group_at_once_all_end_and_leave_no_offset_without_its_group(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 20)
    lease = await coordinate(metadata)
    offsets = {partition: at(1) for partition in partitions}
    backwards = dict(reversed(offsets.items()))
    for _ in range(8):
        answers = await asyncio.gather(
            metadata.commit_group_offsets(lease, GROUP, None, offsets),
            other_process.commit_group_offsets(lease, GROUP, None, backwards),
            metadata.delete_group_offsets(lease, GROUP, partitions),
            other_process.delete_group(lease, GROUP),
            other_process.expire_group_offsets(lease, 0),
            metadata.renew_shards(AGENT, [lease], TTL_MS),
            return_exceptions=True,
        )
        assert {type(answer) for answer in answers} <= {dict, NotFound, type(None), int, list}
        orphans = "SELECT 1 FROM group_offsets WHERE group_id NOT IN (SELECT group_id FROM consumer_groups)"
        assert await metadata_kind.query(orphans) == []
    await metadata.commit_group_offsets(lease, GROUP, None, offsets)
    assert len(await offsets_of(metadata)) == 20


async def test_a_topic_is_deleted_while_its_groups_commit_delete_and_expire(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    names = names_in_shard(shard_of(GROUP), 4)
    lease = await coordinate(metadata)
    for _ in range(4):
        partitions = await make_topic(metadata, 30)
        offsets = {partition: at(1) for partition in partitions}
        for name in names:
            await metadata.commit_group_offsets(lease, name, None, offsets)
        answers = await asyncio.gather(
            other_process.delete_topic(partitions[0].topic_id),
            metadata.commit_group_offsets(lease, names[0], None, dict(reversed(offsets.items()))),
            metadata.delete_group_offsets(lease, names[1], partitions[::-1]),
            metadata.delete_group(lease, names[2]),
            metadata.expire_group_offsets(lease, 0),
            return_exceptions=True,
        )
        assert [
            answer for answer in answers if isinstance(answer, BaseException) and type(answer) is not NotFound
        ] == []
        assert [await offsets_of(metadata, name) for name in names] == [{}] * 4
