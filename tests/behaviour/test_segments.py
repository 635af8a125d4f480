"""What every metadata store does with segments, line by line of the protocol: the commit point of the whole system."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import uuid4

import pytest

from behaviour.metadata_stores import (
    AGENT,
    OTHER,
    TTL_MS,
    MetadataStoreKind,
    acquire,
    epoch_start,
    make_topic,
    segment_commit,
    segments_of,
)
from streamhouse.metadata.store import Lease, MetadataStore, SegmentCommit
from streamhouse.model.errors import InvalidInput, NotFound, StaleEpoch
from streamhouse.model.names import TopicPartition

Refused = Callable[[SegmentCommit], Awaitable[None]]


@pytest.fixture
def refused(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> Refused:
    """Asserts that a commit is refused and changes no row."""

    async def check(commit: SegmentCommit) -> None:
        before = await rows(metadata_kind)
        (answer,) = await metadata.commit_segments([commit])
        assert isinstance(answer, StaleEpoch)
        assert await rows(metadata_kind) == before

    return check


async def rows(kind: MetadataStoreKind) -> list[object]:
    tables = ("segments", "partitions", "leader_epochs", "garbage")
    return [sorted(await kind.query(f"SELECT * FROM {table}"), key=str) for table in tables]


async def next_offset(store: MetadataStore, partition: TopicPartition) -> int:
    (row,) = await store.load_partitions([partition])
    return row.next_offset


async def test_a_commit_registers_the_segment_and_moves_the_partition(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commits = [segment_commit(lease, 0, 10), segment_commit(lease, 10, 11, producer_state=b"\0state\xff")]
    for commit in commits:
        assert await metadata.commit_segments([commit]) == [None]
    segments = await segments_of(metadata, partition)
    assert [replace(segment, created_at_ms=0) for segment in segments] == [commit.segment for commit in commits]
    assert all(segment.created_at_ms > 0 for segment in segments)
    (row,) = await metadata.load_partitions([partition])
    assert (row.next_offset, row.producer_state) == (11, b"\0state\xff")
    assert await metadata_kind.query("SELECT topic, partition_id, high_watermark FROM partitions") == [
        ("orders", 0, 11)
    ]


async def test_a_commit_repeated_with_its_id_is_registered_once(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    commit = segment_commit(await acquire(metadata, partition), 0, 10)
    for _ in range(3):
        assert await metadata.commit_segments([commit]) == [None]
    assert len(await segments_of(metadata, partition)) == 1
    assert await next_offset(metadata, partition) == 10


async def test_a_commit_repeated_after_a_takeover_still_stands(metadata: MetadataStore) -> None:
    """Its first answer was lost; the successor has already gone on from it."""
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commit = segment_commit(lease, 0, 10)
    await metadata.commit_segments([commit])
    await metadata.release_leases(AGENT, [lease], drained=True)
    successor = await acquire(metadata, partition, OTHER)
    assert await metadata.commit_segments([segment_commit(successor, 10, 20)]) == [None]
    assert await metadata.commit_segments([commit]) == [None]
    assert await next_offset(metadata, partition) == 20
    assert len(await segments_of(metadata, partition)) == 2


async def test_one_commit_sent_many_times_at_once_is_registered_once(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    (partition,) = await make_topic(metadata)
    commit = segment_commit(await acquire(metadata, partition), 0, 10)
    answers = await asyncio.gather(
        *(store.commit_segments([commit]) for store in (metadata, other_process) for _ in range(6))
    )
    assert answers == [[None]] * 12
    assert len(await segments_of(metadata, partition)) == 1


async def test_of_many_commits_for_one_offset_exactly_one_is_registered(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    commits = [segment_commit(lease, 0, end) for end in range(1, 13)]
    stores = [metadata, other_process] * 6
    answers = await asyncio.gather(
        *(store.commit_segments([commit]) for store, commit in zip(stores, commits, strict=True))
    )
    (winner,) = [commit for commit, answer in zip(commits, answers, strict=True) if answer == [None]]
    assert await next_offset(metadata, partition) == winner.segment.end_offset
    assert [segment.object_key for segment in await segments_of(metadata, partition)] == [winner.segment.object_key]


async def test_a_commit_that_does_not_start_at_the_next_offset_changes_no_row(
    metadata: MetadataStore, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await refused(segment_commit(lease, 5, 10))
    await metadata.commit_segments([segment_commit(lease, 0, 10)])
    for base_offset in (0, 5, 9, 11):
        await refused(segment_commit(lease, base_offset, 20))


async def test_a_late_commit_after_a_takeover_changes_no_row(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    zombie = await acquire(metadata, partition)
    await metadata_kind.pass_time(TTL_MS)
    successor = await acquire(other_process, partition, OTHER)
    await refused(segment_commit(zombie, 0, 10))
    assert await other_process.commit_segments([segment_commit(successor, 0, 5)]) == [None]
    await refused(segment_commit(zombie, 5, 10))


async def test_a_late_commit_of_the_same_agents_former_process_changes_no_row(
    metadata: MetadataStore, other_process: MetadataStore, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    before_restart = await acquire(metadata, partition)
    after_restart = await acquire(other_process, partition)
    await refused(segment_commit(before_restart, 0, 10))
    assert await other_process.commit_segments([segment_commit(after_restart, 0, 5)]) == [None]


async def test_a_commit_without_the_live_lease_at_its_epoch_changes_no_row(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, refused: Refused
) -> None:
    (partition,) = await make_topic(metadata)
    never_granted = Lease(partition=partition, agent_id=AGENT, epoch=1, expires_at_ms=2**60)
    await refused(segment_commit(never_granted, 0, 10))
    old = await acquire(metadata, partition)
    lease = await acquire(metadata, partition)
    await refused(segment_commit(old, 0, 10))
    await refused(segment_commit(replace(lease, epoch=lease.epoch + 1), 0, 10))
    await refused(segment_commit(replace(lease, agent_id=OTHER), 0, 10))
    await metadata_kind.pass_time(TTL_MS)
    await refused(segment_commit(lease, 0, 10))
    lease = await acquire(metadata, partition)
    await metadata.release_leases(AGENT, [lease], drained=True)
    await refused(segment_commit(lease, 0, 10))


async def test_a_commit_to_a_partition_that_is_gone_changes_no_row(metadata: MetadataStore, refused: Refused) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.delete_topic(partition.topic_id)
    await refused(segment_commit(lease, 0, 10))


async def test_a_takeover_and_a_commit_at_once_leave_one_history(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    """Whichever comes first: the commit stands and the successor goes on from it, or it is refused."""
    for number in range(10):
        (partition,) = await make_topic(metadata, name=f"race-{number}")
        lease = await acquire(metadata, partition)
        (answer,), taken = await asyncio.gather(
            metadata.commit_segments([segment_commit(lease, 0, 10)]), acquire(other_process, partition, AGENT)
        )
        start = await next_offset(metadata, partition)
        assert start == (10 if answer is None else 0)
        assert await other_process.commit_segments([segment_commit(taken, start, start + 5)]) == [None]
        (late,) = await metadata.commit_segments([segment_commit(lease, start + 5, start + 9)])
        assert isinstance(late, StaleEpoch)
    assert await metadata_kind.find_seams() == []


async def test_each_commit_of_a_batch_is_judged_on_its_own(metadata: MetadataStore) -> None:
    first, second, third = await make_topic(metadata, 3)
    one, two = await acquire(metadata, first), await acquire(metadata, second)
    foreign = replace(await acquire(metadata, third, OTHER), agent_id=AGENT)
    answers = await metadata.commit_segments(
        [
            segment_commit(one, 0, 10),
            segment_commit(foreign, 0, 10),
            segment_commit(two, 3, 10),
            segment_commit(two, 0, 7),
        ]
    )
    assert [type(answer) for answer in answers] == [type(None), StaleEpoch, StaleEpoch, type(None)]
    assert [row.next_offset for row in await metadata.load_partitions([first, second, third])] == [10, 7, 0]


async def test_commits_of_one_partition_in_a_batch_follow_one_another(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    repeated = segment_commit(lease, 0, 10, producer_state=b"old")
    answers = await metadata.commit_segments(
        [
            repeated,
            segment_commit(lease, 10, 20, producer_state=b"new"),
            segment_commit(lease, 10, 30, producer_state=b"wrong"),
            repeated,
        ]
    )
    assert [type(answer) for answer in answers] == [type(None), type(None), StaleEpoch, type(None)]
    (row,) = await metadata.load_partitions([partition])
    assert (row.next_offset, row.producer_state) == (20, b"new")
    assert await metadata_kind.find_seams() == []


async def test_a_thousand_partitions_are_committed_in_one_call(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 1000)
    leases = [lease for lease in await metadata.acquire_leases(AGENT, partitions, TTL_MS) if lease is not None]
    commits = [segment_commit(lease, 0, 10) for lease in leases]
    assert await metadata.commit_segments(commits) == [None] * 1000
    assert await metadata.commit_segments(commits) == [None] * 1000
    assert {row.next_offset for row in await metadata.load_partitions(partitions)} == {10}
    assert await metadata_kind.query("SELECT count(*) FROM segments") == [(1000,)]


async def test_batches_that_overlap_in_any_order_do_not_block_one_another(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partitions = await make_topic(metadata, 30)
    leases = [lease for lease in await metadata.acquire_leases(AGENT, partitions, TTL_MS) if lease is not None]
    for round_number in range(5):
        commits = [segment_commit(lease, round_number * 10, round_number * 10 + 10) for lease in leases]
        answers = await asyncio.gather(
            metadata.commit_segments(commits),
            other_process.commit_segments(commits[::-1]),
            metadata.renew_leases(AGENT, leases[::-1], TTL_MS),
            other_process.commit_segments(commits[15:] + commits[:15]),
            other_process.begin_epochs(AGENT, [epoch_start(lease, 0) for lease in reversed(leases)]),
        )
        assert [answers[0], answers[1], answers[3]] == [[None] * 30] * 3
    assert await metadata_kind.find_seams() == []


async def test_a_segment_that_makes_no_sense_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    good = segment_commit(lease, 0, 10)
    for wrong in (
        replace(good, segment=replace(good.segment, end_offset=0)),
        replace(good, segment=replace(good.segment, base_offset=-1)),
        replace(good, segment=replace(good.segment, end_offset=2**63)),
        replace(good, segment=replace(good.segment, epoch=lease.epoch + 1)),
        replace(good, segment=replace(good.segment, object_key="a\0b")),
        replace(good, segment=replace(good.segment, size_bytes=2**63)),
    ):
        with pytest.raises(InvalidInput):
            await metadata.commit_segments([wrong, segment_commit(lease, 10, 20)])
    assert await segments_of(metadata, partition) == []


async def test_partitions_are_loaded_in_the_order_asked(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 4)
    asked = [partitions[2], partitions[0], partitions[3], partitions[2]]
    assert [row.partition for row in await metadata.load_partitions(asked)] == asked
    assert await metadata.load_partitions([]) == []
    with pytest.raises(NotFound):
        await metadata.load_partitions([partitions[0], TopicPartition(uuid4(), 0)])


async def test_segments_of_many_partitions_are_loaded_in_the_order_asked(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 4)
    leases = [await acquire(metadata, partition) for partition in partitions]
    ends = {0: (10, 20, 30), 2: (5,), 3: (1, 2)}
    for number, offsets in ends.items():
        for base_offset, end_offset in zip((0, *offsets), offsets, strict=False):
            await metadata.commit_segments([segment_commit(leases[number], base_offset, end_offset)])
    gone = TopicPartition(uuid4(), 0)
    asked = [partitions[3], gone, partitions[1], partitions[0], partitions[2], partitions[3]]
    loaded = await metadata.load_segments(asked)
    assert [tuple(segment.end_offset for segment in segments) for segments in loaded] == [
        ends[3],
        (),
        (),
        ends[0],
        ends[2],
        ends[3],
    ]
    assert await metadata.load_segments([]) == []


async def test_epochs_are_noted_with_their_first_offset_oldest_first(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    for start_offset in (0, 10, 10, 25):
        lease = await acquire(metadata, partition)
        await metadata.begin_epochs(AGENT, [epoch_start(lease, start_offset)])
    (row,) = await metadata.load_partitions([partition])
    assert row.epochs == ((1, 0), (2, 10), (3, 10), (4, 25))


async def test_an_epoch_that_begins_again_keeps_its_first_offset(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    assert await metadata.begin_epochs(AGENT, [epoch_start(lease, 3)]) == [True]
    assert await metadata.begin_epochs(AGENT, [epoch_start(lease, 99), epoch_start(lease, 98)]) == [True, True]
    (row,) = await metadata.load_partitions([partition])
    assert row.epochs == ((1, 3),)


async def test_an_epoch_that_is_not_the_agents_is_passed_over(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    expired, old, foreign, good = await make_topic(metadata, 4)
    expired_lease, old_lease = await acquire(metadata, expired), await acquire(metadata, old)
    await metadata_kind.pass_time(TTL_MS)
    await acquire(metadata, old)
    foreign_lease, good_lease = await acquire(metadata, foreign, OTHER), await acquire(metadata, good)
    gone = Lease(partition=TopicPartition(uuid4(), 0), agent_id=AGENT, epoch=1, expires_at_ms=0)
    noted = await metadata.begin_epochs(
        AGENT, [epoch_start(lease, 5) for lease in (expired_lease, old_lease, foreign_lease, gone, good_lease)]
    )
    assert noted == [False, False, False, False, True]
    loaded = await metadata.load_partitions([expired, old, foreign, good])
    assert [row.epochs for row in loaded] == [(), (), (), ((1, 5),)]


async def test_the_log_start_moves_forward_and_what_is_wholly_below_becomes_garbage(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, start, start + 10) for start in (0, 10, 20)])
    before = await segments_of(metadata, partition)
    assert await metadata.advance_log_start(partition, AGENT, lease.epoch, 25) == before[:2]
    assert await segments_of(metadata, partition) == before[2:]
    (row,) = await metadata.load_partitions([partition])
    assert (row.log_start_offset, row.next_offset) == (25, 30)
    assert sorted(await metadata.list_garbage(0, 10)) == sorted(segment.object_key for segment in before[:2])
    assert await metadata.advance_log_start(partition, AGENT, lease.epoch, 25) == []
    assert await metadata.advance_log_start(partition, AGENT, lease.epoch, 30) == before[2:]
    assert await next_offset(metadata, partition) == 30
    assert await metadata.commit_segments([segment_commit(lease, 30, 31)]) == [None]
    assert await metadata_kind.find_seams() == []


async def test_the_log_start_moves_neither_back_nor_past_the_end(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, 0, 10)])
    await metadata.advance_log_start(partition, AGENT, lease.epoch, 5)
    for offset in (4, 11, -1, 2**62):
        with pytest.raises(InvalidInput):
            await metadata.advance_log_start(partition, AGENT, lease.epoch, offset)
    (row,) = await metadata.load_partitions([partition])
    assert row.log_start_offset == 5


async def test_the_log_start_is_moved_only_by_the_leader(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, 0, 10)])
    for agent_id, epoch in ((OTHER, lease.epoch), (AGENT, lease.epoch + 1)):
        with pytest.raises(StaleEpoch):
            await metadata.advance_log_start(partition, agent_id, epoch, 10)
    await metadata_kind.pass_time(TTL_MS)
    with pytest.raises(StaleEpoch):
        await metadata.advance_log_start(partition, AGENT, lease.epoch, 10)
    with pytest.raises(StaleEpoch):
        await metadata.advance_log_start(TopicPartition(uuid4(), 0), AGENT, 1, 10)
    assert len(await segments_of(metadata, partition)) == 1
    assert await metadata.list_garbage(0, 10) == []


async def test_garbage_is_listed_when_it_is_old_enough_and_until_it_is_forgotten(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, start, start + 1) for start in range(3)])
    keys = [segment.object_key for segment in await segments_of(metadata, partition)]
    await metadata.advance_log_start(partition, AGENT, lease.epoch, 1)
    await metadata_kind.pass_time(10_000)
    await metadata.advance_log_start(partition, AGENT, lease.epoch, 3)
    assert await metadata.list_garbage(10_000, 10) == keys[:1]
    assert await metadata.list_garbage(60_000, 10) == []
    assert await metadata.list_garbage(0, 1) == keys[:1]
    await metadata_kind.pass_time(50_000)
    assert sorted(await metadata.list_garbage(50_000, 10)) == sorted(keys)
    await metadata.forget_garbage([keys[0], keys[2], "never there"])
    assert await metadata.list_garbage(0, 10) == [keys[1]]


async def test_the_query_for_seams_finds_them(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    """So that an empty answer elsewhere means something."""
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, start, start + 10) for start in (0, 10, 20, 30)])
    assert await metadata_kind.find_seams() == []
    for damage, expected in (
        ("UPDATE segments SET end_offset = 11 WHERE base_offset = 0", "gap or overlap"),
        ("UPDATE segments SET epoch = 9 WHERE base_offset = 10", "epoch goes back"),
        ("UPDATE partitions SET high_watermark = 41", "end is not the next offset"),
        ("DELETE FROM segments WHERE base_offset = 0", "start not covered"),
        ("DELETE FROM segments", "nothing covers it"),
    ):
        await metadata_kind.query(damage)
        assert expected in {seam for seam, *_ in await metadata_kind.find_seams()}
