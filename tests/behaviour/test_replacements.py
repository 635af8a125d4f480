"""What every metadata store does when segments take the place of others: all of it, once, and only by the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from behaviour.metadata_stores import (
    AGENT,
    OTHER,
    TTL_MS,
    MetadataStoreKind,
    acquire,
    make_topic,
    segment_commit,
    segments_of,
)
from streamhouse.metadata.replacement import HISTORY_MS
from streamhouse.metadata.store import Lease, MetadataStore, Replacement, SegmentRow
from streamhouse.model.errors import InvalidInput, NotFound, StaleEpoch, StreamHouseError

TABLES = ("segments", "partitions", "garbage", "segment_replacements")


async def rows(kind: MetadataStoreKind) -> list[object]:
    return [sorted(await kind.query(f"SELECT * FROM {table}"), key=str) for table in TABLES]


async def led_log(metadata: MetadataStore, *ends: int, name: str = "orders") -> tuple[Lease, list[SegmentRow]]:
    """A partition with segments that end at these offsets."""
    (partition,) = await make_topic(metadata, name=name)
    lease = await acquire(metadata, partition)
    starts = (0, *ends)
    await metadata.commit_segments(
        [segment_commit(lease, base, end, producer_state=b"state") for base, end in zip(starts, ends, strict=False)]
    )
    return lease, await segments_of(metadata, partition)


def new_segment(base_offset: int, end_offset: int, *, epoch: int = 1, key: str = "") -> SegmentRow:
    return SegmentRow(
        base_offset=base_offset,
        end_offset=end_offset,
        record_count=1,
        size_bytes=77,
        min_timestamp_ms=1,
        max_timestamp_ms=2,
        epoch=epoch,
        object_key=key or f"segments/new/{uuid4()}",
        checksum=99,
    )


def replacement(
    lease: Lease, removed: Sequence[SegmentRow], *added: SegmentRow, commit_id: UUID | None = None
) -> Replacement:
    return Replacement(
        partition=lease.partition,
        agent_id=lease.agent_id,
        epoch=lease.epoch,
        commit_id=commit_id or uuid4(),
        removed=tuple(segment.object_key for segment in removed),
        added=added,
    )


async def assert_refused(
    metadata: MetadataStore, kind: MetadataStoreKind, asked: Replacement, refusal: type[StreamHouseError], match: str
) -> None:
    before = await rows(kind)
    with pytest.raises(refusal, match=match):
        await metadata.replace_segments(asked)
    assert await rows(kind) == before


@pytest.mark.parametrize(
    ("first", "last", "added"),
    [
        (0, 3, [(0, 40)]),
        (0, 0, [(0, 10)]),
        (3, 3, [(30, 40)]),
        (1, 2, [(10, 30)]),
        (1, 2, [(10, 11), (11, 12), (12, 29), (29, 30)]),
    ],
)
async def test_neighbours_are_replaced_by_what_covers_the_same_offsets(
    metadata: MetadataStore,
    metadata_kind: MetadataStoreKind,
    first: int,
    last: int,
    added: list[tuple[int, int]],
) -> None:
    lease, old = await led_log(metadata, 10, 20, 30, 40)
    new = [new_segment(base, end) for base, end in added]

    await metadata.replace_segments(replacement(lease, old[first : last + 1], *new))

    current = await segments_of(metadata, lease.partition)
    assert [replace(segment, created_at_ms=0) for segment in current] == [
        *(replace(segment, created_at_ms=0) for segment in old[:first]),
        *new,
        *(replace(segment, created_at_ms=0) for segment in old[last + 1 :]),
    ]
    assert set(await metadata.list_garbage(0, 10)) == {segment.object_key for segment in old[first : last + 1]}
    assert await metadata_kind.find_seams() == []
    (row,) = await metadata.load_partitions([lease.partition])
    assert (row.log_start_offset, row.next_offset, row.producer_state) == (0, 40, b"state")


async def test_the_log_goes_on_behind_what_was_replaced_and_may_be_replaced_again(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20)
    await metadata.replace_segments(replacement(lease, old, new_segment(0, 20)))
    assert await metadata.commit_segments([segment_commit(lease, 20, 30)]) == [None]

    await metadata.replace_segments(
        replacement(lease, await segments_of(metadata, lease.partition), new_segment(0, 30))
    )

    assert [(row.base_offset, row.end_offset) for row in await segments_of(metadata, lease.partition)] == [(0, 30)]
    assert await metadata_kind.find_seams() == []


async def test_a_repeat_changes_nothing_whoever_leads_by_then(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20)
    asked = replacement(lease, old, new_segment(0, 20))
    assert not await metadata.was_replaced(asked.commit_id)
    await metadata.replace_segments(asked)
    assert await metadata.was_replaced(asked.commit_id)
    before = await rows(metadata_kind)

    await metadata.replace_segments(asked)
    assert await rows(metadata_kind) == before
    await metadata_kind.pass_time(TTL_MS)
    other = await acquire(metadata, lease.partition, OTHER)
    before = await rows(metadata_kind)
    await metadata.replace_segments(asked)
    await metadata.replace_segments(replace(asked, agent_id=OTHER, epoch=other.epoch))

    assert await rows(metadata_kind) == before


async def test_a_repeat_is_recognised_after_its_own_segments_were_replaced(metadata: MetadataStore) -> None:
    lease, old = await led_log(metadata, 10, 20)
    asked = replacement(lease, old, new_segment(0, 20))
    await metadata.replace_segments(asked)
    await metadata.replace_segments(replacement(lease, asked.added, new_segment(0, 20, key="segments/newest")))

    await metadata.replace_segments(asked)

    assert [row.object_key for row in await segments_of(metadata, lease.partition)] == ["segments/newest"]


async def test_replacements_are_forgotten_after_their_time(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10)
    await metadata.replace_segments(replacement(lease, old, new_segment(0, 10)))
    await metadata_kind.pass_time(HISTORY_MS + 1)
    again = await acquire(metadata, lease.partition)
    current = await segments_of(metadata, lease.partition)

    last = replacement(again, current, new_segment(0, 10))
    await metadata.replace_segments(last)

    stored = await metadata_kind.query("SELECT commit_id FROM segment_replacements")
    assert [str(commit_id) for (commit_id,) in stored] == [str(last.commit_id)]


async def test_only_the_leader_of_the_epoch_may_replace(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10)
    asked = replacement(lease, old, new_segment(0, 10))
    await assert_refused(metadata, metadata_kind, replace(asked, agent_id=OTHER), StaleEpoch, "does not lead")
    await assert_refused(metadata, metadata_kind, replace(asked, epoch=lease.epoch + 1), StaleEpoch, "does not lead")
    await metadata_kind.pass_time(TTL_MS)
    await assert_refused(metadata, metadata_kind, asked, StaleEpoch, "nobody does")
    await acquire(metadata, lease.partition)
    await assert_refused(metadata, metadata_kind, asked, StaleEpoch, "at epoch 2 does")
    await metadata.delete_topic(lease.partition.topic_id)
    await assert_refused(metadata, metadata_kind, asked, StaleEpoch, "is gone")


async def test_what_retention_or_another_was_faster_to_remove_is_not_replaced(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20, 30)
    asked = replacement(lease, old[:2], new_segment(0, 20))
    await metadata.advance_log_start(lease.partition, AGENT, lease.epoch, 10)
    await assert_refused(metadata, metadata_kind, asked, StaleEpoch, "1 of 2 segments .* no longer there")
    await metadata.replace_segments(replacement(lease, old[1:], new_segment(10, 30)))
    await assert_refused(metadata, metadata_kind, asked, StaleEpoch, "2 of 2 segments .* no longer there")


async def test_a_log_start_inside_the_first_segment_does_not_matter(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20)
    await metadata.advance_log_start(lease.partition, AGENT, lease.epoch, 5)

    await metadata.replace_segments(replacement(lease, old, new_segment(0, 20)))

    assert await metadata_kind.find_seams() == []
    assert await metadata.advance_log_start(lease.partition, AGENT, lease.epoch, 10) == []
    assert len(await metadata.advance_log_start(lease.partition, AGENT, lease.epoch, 20)) == 1


@pytest.mark.parametrize(
    ("removed", "added", "match"),
    [
        ([0, 1], [], "segments to add"),
        ([], [(0, 10)], "segments to remove"),
        ([0, 0], [(0, 10)], "twice"),
        ([0, 2], [(0, 30)], "not neighbours"),
        ([0, 1], [(0, 10)], r"cover \[0, 20\) .* cover \[0, 10\)"),
        ([0, 1], [(0, 21)], r"cover \[0, 20\) .* cover \[0, 21\)"),
        ([1], [(9, 20)], r"cover \[10, 20\)"),
        ([0, 1], [(0, 9), (10, 20)], "end at 9 and go on at 10"),
        ([0, 1], [(0, 11), (10, 20)], "end at 11 and go on at 10"),
        ([0, 1], [(10, 20), (0, 10)], "end at 20 and go on at 0"),
        ([0, 1], [(0, 20), (20, 20)], "cannot be committed"),
        ([0, 1], [(-1, 20)], "-1 is not an offset"),
    ],
)
async def test_new_segments_that_do_not_fit_in_the_place_of_the_old_ones_are_refused(
    metadata: MetadataStore,
    metadata_kind: MetadataStoreKind,
    removed: list[int],
    added: list[tuple[int, int]],
    match: str,
) -> None:
    lease, old = await led_log(metadata, 10, 20, 30)
    asked = replacement(lease, [old[number] for number in removed], *(new_segment(base, end) for base, end in added))

    await assert_refused(metadata, metadata_kind, asked, InvalidInput, match)


async def test_a_key_is_not_used_again_nor_stored_when_it_cannot_be(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10)
    own = replacement(lease, old, new_segment(0, 10, key=old[0].object_key))
    await assert_refused(metadata, metadata_kind, own, InvalidInput, "its own place")
    unsayable = replacement(lease, old, new_segment(0, 10, key="nul\0"))
    await assert_refused(metadata, metadata_kind, unsayable, InvalidInput, "cannot be stored")


async def test_new_segments_have_the_newest_epoch_of_the_old_ones(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, _ = await led_log(metadata, 10)
    later = await acquire(metadata, lease.partition)
    await metadata.commit_segments([segment_commit(later, 10, 20)])
    latest = await acquire(metadata, lease.partition)
    await metadata.commit_segments([segment_commit(latest, 20, 30)])
    old = await segments_of(metadata, lease.partition)
    for epoch, match in ((1, "cannot have 1"), (3, "cannot have 3"), (4, "cannot be committed")):
        asked = replacement(latest, old[:2], new_segment(0, 20, epoch=epoch))
        await assert_refused(metadata, metadata_kind, asked, InvalidInput, match)

    await metadata.replace_segments(replacement(latest, old[:2], new_segment(0, 20, epoch=2)))

    assert await metadata_kind.find_seams() == []


async def test_generations_grow_with_every_plan_and_what_an_older_one_made_is_refused(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20)
    other, _ = await led_log(metadata, 10, name="others")
    first, second = [
        await metadata.begin_generation(lease.partition),
        await other_process.begin_generation(lease.partition),
    ]
    assert (first, second, await metadata.begin_generation(other.partition)) == (1, 2, 1)

    for generation in (0, first, 3):
        asked = replace(replacement(lease, old, new_segment(0, 20)), generation=generation)
        await assert_refused(metadata, metadata_kind, asked, StaleEpoch, "another plan has begun generation 2")
    asked = replace(replacement(lease, old[:1], new_segment(0, 10)), generation=second)
    await metadata.replace_segments(asked)
    await metadata.replace_segments(replace(replacement(lease, old[1:], new_segment(10, 20)), generation=second))

    # A repeat of what was done stands, also when the next plan has begun.
    assert await metadata.begin_generation(lease.partition) == 3
    await metadata.replace_segments(asked)
    assert len(await segments_of(metadata, lease.partition)) == 2
    await metadata.delete_topic(lease.partition.topic_id)
    with pytest.raises(NotFound):
        await metadata.begin_generation(lease.partition)


async def test_of_two_that_replace_the_same_at_once_one_does(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20)
    tries = [
        store.replace_segments(replacement(lease, old, new_segment(0, 20)))
        for store in (metadata, other_process, metadata, other_process)
    ]

    answers = await asyncio.gather(*tries, return_exceptions=True)

    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", *["StaleEpoch"] * 3]
    assert len(await segments_of(metadata, lease.partition)) == 1
    assert await metadata_kind.find_seams() == []


async def test_segments_are_committed_and_dropped_while_others_are_replaced(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease, old = await led_log(metadata, 10, 20, 30, 40)

    answers = await asyncio.gather(
        metadata.replace_segments(replacement(lease, old[1:3], new_segment(10, 30))),
        other_process.commit_segments([segment_commit(lease, 40, 50)]),
        metadata.advance_log_start(lease.partition, AGENT, lease.epoch, 10),
        other_process.replace_segments(replacement(lease, old[3:], new_segment(30, 40))),
    )

    assert answers[1] == [None]
    current = await segments_of(metadata, lease.partition)
    assert [(row.base_offset, row.end_offset) for row in current] == [(10, 30), (30, 40), (40, 50)]
    assert await metadata_kind.find_seams() == []


async def test_what_was_replaced_goes_with_its_topic(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    lease, old = await led_log(metadata, 10)
    asked = replacement(lease, old, new_segment(0, 10))
    await metadata.replace_segments(asked)

    await metadata.delete_topic(lease.partition.topic_id)

    assert set(await metadata.list_garbage(0, 10)) == {old[0].object_key, asked.added[0].object_key}
    assert await metadata_kind.query("SELECT * FROM segment_replacements") == []
