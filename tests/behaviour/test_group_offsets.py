"""What every metadata store does with group offsets and producer ids, line by line of the protocol."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from behaviour.metadata_stores import make_topic
from streamhouse.metadata.store import CommittedOffset, MetadataStore
from streamhouse.model.errors import InvalidInput, NotFound
from streamhouse.model.names import TopicPartition


def at(offset: int, metadata: str = "") -> CommittedOffset:
    return CommittedOffset(offset=offset, leader_epoch=1, metadata=metadata)


async def test_committed_offsets_are_fetched_by_group(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    assert await metadata.commit_offsets("g", {first: at(5, "note"), second: at(7)}) == {first: None, second: None}
    fetched = await metadata.fetch_offsets("g")
    assert list(fetched) == [first, second]
    assert (fetched[first].offset, fetched[first].leader_epoch, fetched[first].metadata) == (5, 1, "note")
    assert fetched[first].committed_at_ms > 0
    assert await metadata.fetch_offsets("other") == {}


async def test_a_later_commit_replaces_an_earlier_one_also_backwards(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    for offset in (5, 9, 2):
        await metadata.commit_offsets("g", {partition: at(offset)})
    assert (await metadata.fetch_offsets("g"))[partition].offset == 2


async def test_a_partition_that_does_not_exist_is_told_and_the_others_are_stored(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    gone = TopicPartition(uuid4(), 0)
    beyond = TopicPartition(partition.topic_id, 1)
    answers = await metadata.commit_offsets("g", {gone: at(1), partition: at(2), beyond: at(3)})
    assert list(answers) == [gone, partition, beyond]
    assert [type(answer) for answer in answers.values()] == [NotFound, type(None), NotFound]
    assert list(await metadata.fetch_offsets("g")) == [partition]


async def test_an_offset_that_cannot_be_stored_is_told_and_the_others_are_stored(metadata: MetadataStore) -> None:
    first, second, third = await make_topic(metadata, 3)
    answers = await metadata.commit_offsets("g", {first: at(1, "\ud800"), second: at(2), third: at(-1)})
    assert [type(answer) for answer in answers.values()] == [InvalidInput, type(None), InvalidInput]
    assert list(await metadata.fetch_offsets("g")) == [second]


async def test_deleted_offsets_are_gone_and_the_others_stay(metadata: MetadataStore) -> None:
    first, second = await make_topic(metadata, 2)
    for group in ("g", "other"):
        await metadata.commit_offsets(group, {first: at(1), second: at(2)})
    await metadata.delete_offsets("g", [first, TopicPartition(uuid4(), 0)])
    assert list(await metadata.fetch_offsets("g")) == [second]
    assert list(await metadata.fetch_offsets("other")) == [first, second]


async def test_offsets_of_a_thousand_partitions_are_committed_in_one_call(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 1000)
    answers = await metadata.commit_offsets("g", {partition: at(partition.partition) for partition in partitions})
    assert set(answers.values()) == {None}
    fetched = await metadata.fetch_offsets("g")
    assert {partition: offset.offset for partition, offset in fetched.items()} == {
        partition: partition.partition for partition in partitions
    }


async def test_commits_and_deletions_of_one_group_at_once_all_end(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 20)
    offsets = {partition: at(1) for partition in partitions}
    backwards = dict(reversed(offsets.items()))
    for _ in range(5):
        await asyncio.gather(
            metadata.commit_offsets("g", offsets),
            other_process.commit_offsets("g", backwards),
            metadata.delete_offsets("g", partitions),
            other_process.delete_offsets("g", partitions[::-1]),
        )
    await metadata.commit_offsets("g", offsets)
    assert len(await metadata.fetch_offsets("g")) == 20


async def test_nobody_gets_a_producer_id_twice(metadata: MetadataStore, other_process: MetadataStore) -> None:
    counts = [1, 7, 100, 3, 50, 1] * 3
    stores = [metadata, other_process] * 9
    firsts = await asyncio.gather(
        *(store.allocate_producer_ids(count) for store, count in zip(stores, counts, strict=True))
    )
    given = [number for first, count in zip(firsts, counts, strict=True) for number in range(first, first + count)]
    assert len(set(given)) == len(given) == sum(counts)
    assert min(given) >= 0


async def test_producer_ids_come_in_positive_numbers(metadata: MetadataStore) -> None:
    for count in (0, -1):
        with pytest.raises(InvalidInput):
            await metadata.allocate_producer_ids(count)
