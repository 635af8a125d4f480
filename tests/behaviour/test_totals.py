"""What every metadata store says of how much is stored and how far groups are."""

from __future__ import annotations

from uuid import uuid4

import pytest

from behaviour.coordinators import at, coordinate
from behaviour.metadata_stores import AGENT, acquire, make_topic, segment_commit
from streamhouse.metadata.store import MetadataStore
from streamhouse.metadata.totals import NOTHING_STORED, GroupPosition, StoredSize, StoredTopic
from streamhouse.model.errors import InvalidInput


async def test_nothing_is_stored_at_first(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)

    assert await metadata.stored_size() == NOTHING_STORED
    assert await metadata.stored_sizes(partition.topic_id) == {}
    assert await metadata.stored_sizes(uuid4()) == {}
    assert await metadata.stored_topics() == {}


async def test_segments_count_for_their_partition_and_for_all(metadata: MetadataStore) -> None:
    first, second, _ = await make_topic(metadata, 3)
    (other,) = await make_topic(metadata, name="payments")
    leases = {partition: await acquire(metadata, partition) for partition in (first, second, other)}
    commits = [
        segment_commit(leases[first], 0, 10),
        segment_commit(leases[first], 10, 25),
        segment_commit(leases[second], 0, 5),
        segment_commit(leases[other], 0, 1),
    ]
    assert await metadata.commit_segments(commits) == [None] * 4

    assert await metadata.stored_sizes(first.topic_id) == {
        0: StoredSize(segment_count=2, size_bytes=2000),
        1: StoredSize(segment_count=1, size_bytes=1000),
    }
    assert await metadata.stored_size() == StoredSize(segment_count=4, size_bytes=4000)
    assert await metadata.stored_topics() == {
        first.topic_id: StoredTopic(size=StoredSize(segment_count=3, size_bytes=3000), newest_ms=2),
        other.topic_id: StoredTopic(size=StoredSize(segment_count=1, size_bytes=1000), newest_ms=2),
    }


async def test_what_retention_drops_is_stored_no_longer(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, 0, 10), segment_commit(lease, 10, 20)])

    await metadata.advance_log_start(partition, AGENT, lease.epoch, 10)

    assert await metadata.stored_size() == StoredSize(segment_count=1, size_bytes=1000)


async def test_positions_of_all_groups_are_listed_up_to_a_limit(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 2)
    for group_id, offset in (("readers", 7), ("Billing", 3)):
        lease = await coordinate(metadata, group_id)
        offsets = {each: at(offset) for each in partitions}
        await metadata.commit_group_offsets(lease, group_id, None, offsets)

    expected = [
        GroupPosition(group_id=group_id, partition=partition, offset=offset)
        for group_id, offset in (("Billing", 3), ("readers", 7))
        for partition in partitions
    ]
    assert await metadata.list_group_positions(100) == expected
    assert await metadata.list_group_positions(3) == expected[:3]


async def test_positions_in_a_topic_come_by_whole_groups(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 3)
    (elsewhere,) = await make_topic(metadata, name="payments")
    names = ["Billing", "idle", "readers", "\u00e9tude", "\U0001f600"]
    for group_id in names:
        lease = await coordinate(metadata, group_id)
        await metadata.commit_group_offsets(lease, group_id, None, {each: at(7) for each in (*partitions, elsewhere)})
    lease = await coordinate(metadata, "aside")
    await metadata.commit_group_offsets(lease, "aside", None, {elsewhere: at(7)})
    topic_id = partitions[0].topic_id

    def of(*groups: str) -> list[GroupPosition]:
        return [
            GroupPosition(group_id=group_id, partition=partition, offset=7)
            for group_id in groups
            for partition in partitions
        ]

    assert await metadata.list_topic_positions(topic_id, 2) == of("Billing", "idle")
    assert await metadata.list_topic_positions(topic_id, 2, after_group="idle") == of("readers", "\u00e9tude")
    assert await metadata.list_topic_positions(topic_id, 2, after_group="j") == of("readers", "\u00e9tude")
    assert await metadata.list_topic_positions(topic_id, 9, after_group="\u00e9tude") == of("\U0001f600")
    assert await metadata.list_topic_positions(topic_id, 9) == of(*sorted(names))
    assert await metadata.list_topic_positions(uuid4(), 3) == []


async def test_a_page_that_is_none_is_refused(metadata: MetadataStore) -> None:
    with pytest.raises(InvalidInput):
        await metadata.list_group_positions(0)
    with pytest.raises(InvalidInput):
        await metadata.list_topic_positions(uuid4(), 0)
    with pytest.raises(InvalidInput):
        await metadata.list_topic_positions(uuid4(), 1, after_group="\0")
