"""What every metadata store does with objects of the WAL, line by line of the protocol: the commit point of what is
acknowledged in object durability."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from behaviour.cluster import accepted_transfer, complete, wal_commit
from behaviour.coordinators import rival, until_waiting
from behaviour.metadata_stores import (
    AGENT,
    OTHER,
    TTL_MS,
    MetadataStoreKind,
    SqliteKind,
    acquire,
    make_topic,
    segment_commit,
)
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.errors import InvalidInput, StaleEpoch
from streamhouse.model.names import TopicPartition

Refused = Callable[[WalCommit], Awaitable[None]]


@pytest.fixture
def refused(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> Refused:
    """Asserts that all of a commit is refused and changes no row."""

    async def check(commit: WalCommit) -> None:
        before = await rows(metadata_kind)
        (answers,) = await metadata.commit_wal_objects([commit])
        assert [type(answer) for answer in answers] == [StaleEpoch] * len(commit.ranges)
        assert await rows(metadata_kind) == before

    return check


async def rows(kind: MetadataStoreKind) -> list[object]:
    tables = ("wal_objects", "wal_ranges", "partitions", "garbage")
    return [sorted(await kind.query(f"SELECT * FROM {table}"), key=str) for table in tables]


async def durable_end(store: MetadataStore, partition: TopicPartition) -> int:
    (row,) = await store.load_partitions([partition])
    return row.durable_end


async def ranges_of(store: MetadataStore, partition: TopicPartition) -> list[WalRange]:
    (ranges,) = await store.load_wal_ranges([partition])
    return ranges


def spans(ranges: list[WalRange]) -> list[tuple[int, int]]:
    return [(item.base_offset, item.end_offset) for item in ranges]


def kinds(answers: list[list[Exception | None]]) -> list[list[type]]:
    return [[type(answer) for answer in of_commit] for of_commit in answers]


GOOD, STALE = type(None), StaleEpoch


async def test_a_commit_makes_its_ranges_durable_and_moves_no_committed_end(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    one, two = await acquire(metadata, first), await acquire(metadata, second)
    commit = wal_commit((one, 0, 10), (two, 0, 3), (one, 10, 12))
    assert await metadata.commit_wal_objects([commit]) == [[None, None, None]]
    assert await metadata.load_wal_ranges([second, first]) == [
        [commit.ranges[1]],
        [commit.ranges[0], commit.ranges[2]],
    ]
    loaded = await metadata.load_partitions([first, second])
    assert [(row.next_offset, row.durable_end) for row in loaded] == [(0, 12), (0, 3)]
    assert await metadata.list_wal_object_keys() == [commit.object_key]


async def test_the_row_of_an_object_says_whose_it_is_and_when_it_came(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    commit = wal_commit((await acquire(metadata, partition), 0, 10))
    await metadata.commit_wal_objects([commit])
    ((key, commit_id, agent_id, size_bytes, created_at),) = await metadata_kind.query("SELECT * FROM wal_objects")
    assert (key, str(commit_id), agent_id, size_bytes) == (commit.object_key, str(commit.commit_id), AGENT, 1000)
    assert created_at > 0


async def test_commits_follow_one_another_in_one_call_and_in_many(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    assert await metadata.commit_wal_objects([wal_commit((lease, 0, 5))]) == [[None]]
    commits = [wal_commit((lease, 5, 9), (lease, 9, 10)), wal_commit((lease, 10, 20))]
    assert await metadata.commit_wal_objects(commits) == [[None, None], [None]]
    assert spans(await ranges_of(metadata, partition)) == [(0, 5), (5, 9), (9, 10), (10, 20)]
    assert await durable_end(metadata, partition) == 20


async def test_a_commit_repeated_with_its_id_is_stored_once(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    commit = wal_commit((await acquire(metadata, partition), 0, 10))
    for _ in range(3):
        assert await metadata.commit_wal_objects([commit]) == [[None]]
    assert await metadata.commit_wal_objects([commit, commit]) == [[None], [None]]
    assert spans(await ranges_of(metadata, partition)) == [(0, 10)]
    assert await metadata.list_wal_object_keys() == [commit.object_key]


async def test_a_new_commit_twice_in_one_call_is_stored_once(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commit = wal_commit((lease, 0, 10), (lease, 99, 100))
    assert kinds(await metadata.commit_wal_objects([commit, commit])) == [[GOOD, STALE]] * 2
    assert spans(await ranges_of(metadata, partition)) == [(0, 10)]


async def test_a_commit_repeated_after_a_takeover_still_stands(metadata: MetadataStore) -> None:
    """Its first answer was lost; the successor has already gone on from it, and has made a segment of it."""
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commit = wal_commit((lease, 0, 10))
    await metadata.commit_wal_objects([commit])
    await metadata.release_leases(AGENT, [lease], drained=True)
    successor = await acquire(metadata, partition, OTHER)
    assert await metadata.commit_wal_objects([wal_commit((successor, 10, 20), agent_id=OTHER)]) == [[None]]
    assert await metadata.commit_wal_objects([commit]) == [[None]]
    await metadata.commit_segments([segment_commit(successor, 0, 20)])
    assert await metadata.commit_wal_objects([commit]) == [[None]]
    assert await durable_end(metadata, partition) == 20


async def test_a_repeat_is_answered_for_each_range_as_it_was_the_first_time(metadata: MetadataStore) -> None:
    """Also when the successor wrote the same offsets: what was refused is never taken for durable."""
    mine, lost = await make_topic(metadata, 2)
    lease = await acquire(metadata, mine)
    zombie = await acquire(metadata, lost)
    await metadata.release_leases(AGENT, [zombie], drained=True)
    successor = await acquire(metadata, lost, OTHER)
    commit = wal_commit((lease, 0, 10), (zombie, 0, 10))
    assert kinds(await metadata.commit_wal_objects([commit])) == [[GOOD, STALE]]
    await metadata.commit_wal_objects([wal_commit((successor, 0, 10), agent_id=OTHER)])
    assert kinds(await metadata.commit_wal_objects([commit])) == [[GOOD, STALE]]
    await metadata.commit_segments([segment_commit(successor, 0, 10)])
    assert kinds(await metadata.commit_wal_objects([commit])) == [[GOOD, STALE]]


async def test_a_repeat_of_what_is_retired_changes_no_row(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    """Only a successor can have covered it: this leader knew nothing of its being durable."""
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commit = wal_commit((lease, 0, 10))
    await metadata.commit_wal_objects([commit])
    await metadata_kind.pass_time(TTL_MS)
    successor = await acquire(metadata, partition, OTHER)
    await metadata.commit_segments([segment_commit(successor, 0, 10)])
    assert await metadata.retire_wal_objects(10) == 1
    before = await rows(metadata_kind)
    assert kinds(await metadata.commit_wal_objects([commit])) == [[STALE]]
    assert await rows(metadata_kind) == before


async def test_one_commit_sent_many_times_at_once_is_stored_once(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 5)
    leases = [await acquire(metadata, partition) for partition in partitions]
    commit = wal_commit(*((lease, 0, 10) for lease in leases))
    answers = await asyncio.gather(
        *(store.commit_wal_objects([commit]) for store in (metadata, other_process) for _ in range(5))
    )
    assert answers == [[[None] * 5]] * 10
    assert await metadata.list_wal_object_keys() == [commit.object_key]


async def test_of_many_commits_for_one_offset_exactly_one_is_stored(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commits = [wal_commit((lease, 0, end)) for end in range(1, 13)]
    stores = [metadata, other_process] * 6
    answers = await asyncio.gather(
        *(store.commit_wal_objects([commit]) for store, commit in zip(stores, commits, strict=True))
    )
    (winner,) = [commit for commit, answer in zip(commits, answers, strict=True) if answer == [[None]]]
    assert await ranges_of(metadata, partition) == list(winner.ranges)
    assert await metadata.list_wal_object_keys() == [winner.object_key]


async def test_a_range_that_does_not_start_at_the_durable_end_changes_no_row(
    metadata: MetadataStore, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await refused(wal_commit((lease, 5, 10)))
    await metadata.commit_segments([segment_commit(lease, 0, 10)])
    for base_offset in (0, 9, 11):
        await refused(wal_commit((lease, base_offset, 20)))
    await metadata.commit_wal_objects([wal_commit((lease, 10, 15))])
    for base_offset in (0, 10, 14, 16):
        await refused(wal_commit((lease, base_offset, 20)))
    await metadata.commit_segments([segment_commit(lease, 10, 30)])
    for base_offset in (15, 29):
        await refused(wal_commit((lease, base_offset, 40)))
    assert await metadata.commit_wal_objects([wal_commit((lease, 30, 40))]) == [[None]]


async def test_a_late_commit_after_a_takeover_changes_no_row(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    zombie = await acquire(metadata, partition)
    await metadata_kind.pass_time(TTL_MS)
    successor = await acquire(other_process, partition, OTHER)
    await refused(wal_commit((zombie, 0, 10)))
    assert await other_process.commit_wal_objects([wal_commit((successor, 0, 5), agent_id=OTHER)]) == [[None]]
    await refused(wal_commit((zombie, 5, 10)))
    await refused(wal_commit((zombie, 5, 10), agent_id=OTHER))


async def test_a_late_commit_of_the_same_agents_former_process_changes_no_row(
    metadata: MetadataStore, other_process: MetadataStore, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    before_restart = await acquire(metadata, partition)
    after_restart = await acquire(other_process, partition)
    await refused(wal_commit((before_restart, 0, 10)))
    assert await other_process.commit_wal_objects([wal_commit((after_restart, 0, 5))]) == [[None]]
    await refused(wal_commit((before_restart, 5, 10)))


async def test_a_late_commit_after_a_hand_over_changes_no_row(metadata: MetadataStore, refused: Refused) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    assert await complete(metadata, await accepted_transfer(metadata, lease), lease) is None
    await refused(wal_commit((lease, 0, 10)))


async def test_a_commit_without_the_live_lease_at_its_epoch_changes_no_row(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    never_granted = Lease(partition=partition, agent_id=AGENT, epoch=1, expires_at_ms=2**60)
    await refused(wal_commit((never_granted, 0, 10)))
    lease = await acquire(metadata, partition)
    await refused(wal_commit((replace(lease, epoch=lease.epoch + 1), 0, 10)))
    await refused(wal_commit((lease, 0, 10), agent_id=OTHER))
    await metadata_kind.pass_time(TTL_MS)
    await refused(wal_commit((lease, 0, 10)))
    lease = await acquire(metadata, partition)
    await metadata.release_leases(AGENT, [lease], drained=True)
    await refused(wal_commit((lease, 0, 10)))


async def test_a_commit_to_a_partition_that_is_gone_changes_no_row(metadata: MetadataStore, refused: Refused) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.delete_topic(partition.topic_id)
    await refused(wal_commit((lease, 0, 10)))
    (new,) = await make_topic(metadata)
    await acquire(metadata, new)
    await refused(wal_commit((lease, 0, 10)))


async def test_each_range_is_judged_on_its_own(metadata: MetadataStore) -> None:
    first, second, third = await make_topic(metadata, 3)
    one, two = await acquire(metadata, first), await acquire(metadata, second)
    foreign = await acquire(metadata, third, OTHER)
    gone = Lease(partition=TopicPartition(uuid4(), 0), agent_id=AGENT, epoch=1, expires_at_ms=0)
    commits = [
        wal_commit((one, 0, 10), (foreign, 0, 10), (two, 3, 10), (gone, 0, 1), (two, 0, 7), (one, 10, 11)),
        wal_commit((one, 10, 20), (two, 8, 9)),
        wal_commit((two, 7, 8), (one, 11, 12)),
    ]
    answers = await metadata.commit_wal_objects(commits)
    assert kinds(answers) == [[GOOD, STALE, STALE, STALE, GOOD, GOOD], [STALE, STALE], [GOOD, GOOD]]
    loaded = await metadata.load_wal_ranges([first, second, third])
    assert [spans(ranges) for ranges in loaded] == [[(0, 10), (10, 11), (11, 12)], [(0, 7), (7, 8)], []]
    # An object of which nothing was accepted is not stored.
    assert await metadata.list_wal_object_keys() == sorted([commits[0].object_key, commits[2].object_key])


async def test_what_follows_a_refused_range_is_refused_too(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    old = await acquire(metadata, partition)
    lease = await acquire(metadata, partition)
    answers = await metadata.commit_wal_objects([wal_commit((old, 0, 5), (lease, 5, 10))])
    assert kinds(answers) == [[STALE, STALE]]
    assert await durable_end(metadata, partition) == 0


async def test_an_object_without_ranges_is_not_stored(metadata: MetadataStore) -> None:
    assert await metadata.commit_wal_objects([wal_commit()]) == [[]]
    assert await metadata.commit_wal_objects([]) == []
    assert await metadata.list_wal_object_keys() == []


async def test_segments_and_wal_objects_of_one_partition_go_on_beside_each_other(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    for start in range(0, 50, 10):
        commit = wal_commit((lease, start, start + 5), (lease, start + 5, start + 10))
        assert await metadata.commit_wal_objects([commit]) == [[None, None]]
        if start:
            assert await metadata.commit_segments([segment_commit(lease, start - 10, start)]) == [None]
    (row,) = await metadata.load_partitions([partition])
    assert (row.next_offset, row.durable_end) == (40, 50)
    assert spans(await ranges_of(metadata, partition)) == [(40, 45), (45, 50)]
    assert await metadata_kind.find_seams() == []


async def test_what_segments_cover_in_part_is_still_loaded(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_wal_objects([wal_commit((lease, 0, 5), (lease, 5, 10), (lease, 10, 15))])
    for committed_end, expected in ((5, [(5, 10), (10, 15)]), (7, [(5, 10), (10, 15)]), (15, [])):
        row = (await metadata.load_partitions([partition]))[0]
        await metadata.commit_segments([segment_commit(lease, row.next_offset, committed_end)])
        assert spans(await ranges_of(metadata, partition)) == expected


async def test_ranges_are_loaded_in_the_order_asked(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 4)
    leases = [await acquire(metadata, partition) for partition in partitions]
    await metadata.commit_wal_objects([wal_commit(*((leases[number], 0, number + 1) for number in (0, 2, 3)))])
    gone = TopicPartition(uuid4(), 0)
    asked = [partitions[3], gone, partitions[1], partitions[0], partitions[3]]
    assert [spans(ranges) for ranges in await metadata.load_wal_ranges(asked)] == [[(0, 4)], [], [], [(0, 1)], [(0, 4)]]
    assert await metadata.load_wal_ranges([]) == []


async def test_an_object_is_retired_when_segments_cover_all_of_it(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    one, two = await acquire(metadata, first), await acquire(metadata, second)
    shared, single = wal_commit((one, 0, 10), (two, 0, 10)), wal_commit((one, 10, 20))
    await metadata.commit_wal_objects([shared, single])
    assert await metadata.retire_wal_objects(10) == 0
    await metadata.commit_segments([segment_commit(one, 0, 15), segment_commit(two, 0, 9)])
    assert await metadata.retire_wal_objects(10) == 0
    assert await metadata.list_garbage(0, 10) == []
    await metadata.commit_segments([segment_commit(two, 9, 10)])
    assert await metadata.retire_wal_objects(10) == 1
    assert await metadata.list_wal_object_keys() == [single.object_key]
    # At once, however long what segments left must wait.
    assert await metadata.list_garbage(3_600_000, 10) == [shared.object_key]
    await metadata.commit_segments([segment_commit(one, 15, 20)])
    assert await metadata.retire_wal_objects(10) == 1
    assert await metadata.retire_wal_objects(10) == 0
    assert sorted(await metadata.list_garbage(3_600_000, 10)) == sorted([shared.object_key, single.object_key])
    await metadata.forget_garbage([shared.object_key, single.object_key])
    assert await metadata.list_garbage(0, 10) == []


async def test_no_more_objects_are_retired_than_asked_for(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_wal_objects([wal_commit((lease, number, number + 1)) for number in range(5)])
    await metadata.commit_segments([segment_commit(lease, 0, 5)])
    assert [await metadata.retire_wal_objects(2) for _ in range(4)] == [2, 2, 1, 0]
    assert len(await metadata.list_garbage(0, 10)) == 5
    assert await metadata_kind.query("SELECT count(*) FROM wal_ranges") == [(0,)]
    with pytest.raises(InvalidInput):
        await metadata.retire_wal_objects(0)


async def test_agents_that_retire_at_once_do_not_disturb_each_other(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 8)
    leases = [await acquire(metadata, partition) for partition in partitions]
    for start in range(0, 30, 10):
        await metadata.commit_wal_objects(
            [wal_commit(*((lease, start + step, start + step + 1) for lease in leases)) for step in range(10)]
        )
    await metadata.commit_segments([segment_commit(lease, 0, 30) for lease in leases])
    retired = await asyncio.gather(
        *(store.retire_wal_objects(100) for store in (metadata, other_process) for _ in range(4)),
        metadata.commit_wal_objects([wal_commit(*((lease, 30, 40) for lease in leases))]),
    )
    assert sum(count for count in retired if isinstance(count, int)) == 30
    assert len(await metadata.list_garbage(0, 100)) == 30
    assert len(await metadata.list_wal_object_keys()) == 1


async def test_a_deleted_topic_leaves_its_objects_to_be_retired(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (kept,) = await make_topic(metadata, name="kept")
    (gone,) = await make_topic(metadata, name="gone")
    one, two = await acquire(metadata, kept), await acquire(metadata, gone)
    shared, single = wal_commit((one, 0, 10), (two, 0, 10)), wal_commit((two, 10, 20))
    await metadata.commit_wal_objects([shared, single])
    await metadata.delete_topic(gone.topic_id)
    assert await metadata_kind.query("SELECT count(*) FROM wal_ranges") == [(1,)]
    assert await metadata.retire_wal_objects(10) == 1
    assert await metadata.list_garbage(3_600_000, 10) == [single.object_key]
    assert await metadata.list_wal_object_keys() == [shared.object_key]
    assert spans(await ranges_of(metadata, kept)) == [(0, 10)]
    assert kinds(await metadata.commit_wal_objects([shared])) == [[GOOD, STALE]]


async def test_a_takeover_and_a_commit_at_once_leave_one_history(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    """Whichever comes first: the commit stands and the successor goes on from it, or it is refused."""
    for number in range(10):
        (partition,) = await make_topic(metadata, name=f"race-{number}")
        lease = await acquire(metadata, partition)
        ((answer,),), taken = await asyncio.gather(
            metadata.commit_wal_objects([wal_commit((lease, 0, 10))]), acquire(other_process, partition, AGENT)
        )
        start = await durable_end(metadata, partition)
        assert start == (10 if answer is None else 0)
        assert await other_process.commit_wal_objects([wal_commit((taken, start, start + 5))]) == [[None]]
        late = await metadata.commit_wal_objects([wal_commit((lease, start + 5, start + 9))])
        assert kinds(late) == [[STALE]]


async def test_a_commit_waits_for_a_takeover_and_is_then_refused(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    takeover = f"UPDATE partition_leases SET leader_agent_id = '{OTHER}', epoch = epoch + 1"
    async with rival(metadata_kind, takeover):
        committing = asyncio.create_task(metadata.commit_wal_objects([wal_commit((lease, 0, 10))]))
        await until_waiting(metadata_kind, committing)
    assert kinds(await committing) == [[STALE]]
    assert await durable_end(metadata, partition) == 0


async def test_a_takeover_waits_for_a_commit_and_then_sees_it(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commit = wal_commit((lease, 0, 10))
    # Something of the commit that only its last statement meets.
    blocker = (
        "INSERT INTO wal_objects (object_key, commit_id, agent_id, size_bytes, created_at)"
        f" VALUES ('{commit.object_key}', '{uuid4()}', 'x', 1, 1)"
    )
    async with rival(metadata_kind, blocker, end="ROLLBACK"):
        committing = asyncio.create_task(metadata.commit_wal_objects([commit]))
        await until_waiting(metadata_kind, committing)
        taking = asyncio.create_task(acquire(other_process, partition))
        await until_waiting(metadata_kind, committing, taking)
    is_committed = await committing == [[None]]
    # Those who wait for SQLite's one writer get their turn in any order.
    assert is_committed or isinstance(metadata_kind, SqliteKind)
    taken = await taking
    assert taken.epoch == 2
    end = await durable_end(metadata, partition)
    assert end == (10 if is_committed else 0)
    assert await metadata.commit_wal_objects([wal_commit((taken, end, end + 1))]) == [[None]]


async def test_a_thousand_ranges_are_committed_loaded_and_retired_in_one_call_each(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 1000)
    leases = [lease for lease in await metadata.acquire_leases(AGENT, partitions, TTL_MS) if lease is not None]
    commit = wal_commit(*((lease, 0, 10) for lease in leases))
    for _ in range(2):
        assert await metadata.commit_wal_objects([commit]) == [[None] * 1000]
    assert [spans(ranges) for ranges in await metadata.load_wal_ranges(partitions)] == [[(0, 10)]] * 1000
    await metadata.commit_segments([segment_commit(lease, 0, 10) for lease in leases])
    assert await metadata.retire_wal_objects(1) == 1
    assert await metadata_kind.query("SELECT count(*) FROM wal_ranges") == [(0,)]


async def test_a_commit_that_makes_no_sense_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    good = wal_commit((lease, 0, 10))
    (item,) = good.ranges
    for wrong in (
        replace(good, ranges=(replace(item, end_offset=0),)),
        replace(good, ranges=(replace(item, base_offset=-1),)),
        replace(good, ranges=(replace(item, end_offset=2**63),)),
        replace(good, ranges=(replace(item, position=-1),)),
        replace(good, ranges=(replace(item, size_bytes=2**63),)),
        replace(good, ranges=(replace(item, object_key="another"),)),
        replace(good, size_bytes=-1),
        replace(good, agent_id="a\0b"),
        replace(good, object_key="a\0b", ranges=(replace(item, object_key="a\0b"),)),
    ):
        with pytest.raises(InvalidInput):
            await metadata.commit_wal_objects([wrong])
    assert await metadata.list_wal_object_keys() == []


async def test_hostile_keys_are_values_and_nothing_else(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    for number, name in enumerate(("'; DROP TABLE wal_objects; --", "%s $1 :name ?", "naïve ✓ 漢字", "x" * 5000)):
        good = wal_commit((lease, number, number + 1))
        hostile = replace(good, object_key=name, ranges=(replace(good.ranges[0], object_key=name),))
        assert await metadata.commit_wal_objects([hostile]) == [[None]]
    assert len(await metadata.list_wal_object_keys()) == 4
    assert len(await ranges_of(metadata, partition)) == 4
