"""What every metadata store does with what was rebuilt from a bucket: all of it, once, and never over what it has."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind, acquire, make_topic, segment_commit
from streamhouse.core.rebuild import (
    FoundRange,
    FoundSegment,
    RebuiltMetadata,
    RebuiltPartition,
    RebuiltTopic,
    RebuiltWalObject,
)
from streamhouse.metadata.store import MetadataStore, SegmentRow
from streamhouse.model.errors import AlreadyExists
from streamhouse.model.names import TopicPartition

TOPIC_ID = UUID(int=77)
PARTITION = TopicPartition(TOPIC_ID, 1)
WAL_OBJECT = RebuiltWalObject(object_key="wal/agent-1/object", agent_id=AGENT, size_bytes=500)


def segment(base_offset: int, end_offset: int, epoch: int) -> FoundSegment:
    return FoundSegment(
        object_key=f"segments/{base_offset}",
        base_offset=base_offset,
        end_offset=end_offset,
        record_count=end_offset - base_offset - 1,
        size_bytes=100,
        min_timestamp_ms=1,
        max_timestamp_ms=2,
        epoch=epoch,
        checksum=2**32 - 1,
    )


EMPTY = RebuiltPartition(
    partition=0,
    log_start_offset=0,
    next_offset=0,
    durable_end=0,
    lease_epoch=100_000,
    generation=0,
    epochs=(),
    segments=(),
    ranges=(),
)
FILLED = RebuiltPartition(
    partition=1,
    log_start_offset=10,
    next_offset=30,
    durable_end=40,
    lease_epoch=100_007,
    generation=6,
    epochs=((3, 10), (7, 25)),
    segments=(segment(10, 20, 3), segment(20, 30, 7)),
    ranges=(
        FoundRange(
            object_key=WAL_OBJECT.object_key,
            base_offset=25,
            end_offset=40,
            epoch=7,
            position=8,
            size_bytes=300,
            checksum=99,
        ),
    ),
)
TOPIC = RebuiltTopic(
    name="orders", topic_id=TOPIC_ID, created_at_ms=5, config={"retention.ms": "-1"}, partitions=(EMPTY, FILLED)
)
REBUILT = RebuiltMetadata(topics=(TOPIC,), wal_objects=(WAL_OBJECT,), next_producer_id=10**15, wal_agent_id="")


async def test_everything_that_was_found_is_there_again(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    await metadata.restore(REBUILT)

    (topic,) = await metadata.list_topics()
    assert (topic.name, topic.topic_id, topic.partition_count) == ("orders", TOPIC_ID, 2)
    assert (dict(topic.config), topic.created_at_ms) == ({"retention.ms": "-1"}, 5)
    (row,) = await metadata.load_partitions([PARTITION])
    assert (row.log_start_offset, row.next_offset, row.durable_end) == (10, 30, 40)
    assert row.epochs == ((3, 10), (7, 25))
    (segments,) = await metadata.load_segments([PARTITION])
    assert [replace(each, created_at_ms=0) for each in segments] == [
        SegmentRow(
            base_offset=found.base_offset,
            end_offset=found.end_offset,
            record_count=found.record_count,
            size_bytes=found.size_bytes,
            min_timestamp_ms=found.min_timestamp_ms,
            max_timestamp_ms=found.max_timestamp_ms,
            epoch=found.epoch,
            object_key=found.object_key,
            checksum=found.checksum or 0,
        )
        for found in FILLED.segments
    ]
    (ranges,) = await metadata.load_wal_ranges([PARTITION])
    assert [(each.base_offset, each.end_offset, each.epoch, each.object_key) for each in ranges] == [
        (25, 40, 7, WAL_OBJECT.object_key)
    ]
    assert await metadata.list_wal_object_keys() == [WAL_OBJECT.object_key]
    assert await metadata_kind.find_seams() == []


async def test_leaders_go_on_with_later_epochs_and_new_producer_ids(metadata: MetadataStore) -> None:
    await metadata.restore(REBUILT)

    lease = await acquire(metadata, PARTITION)
    assert lease.epoch == 100_008
    assert await metadata.allocate_producer_ids(10) == 10**15
    (answer,) = await metadata.commit_segments([segment_commit(lease, 30, 50)])
    assert answer is None


async def test_only_the_agent_whose_disk_may_hold_more_gets_the_lease(metadata: MetadataStore) -> None:
    await metadata.restore(replace(REBUILT, wal_agent_id=AGENT))

    assert await metadata.acquire_leases(OTHER, [PARTITION], TTL_MS) == [None]
    assert (await acquire(metadata, PARTITION)).agent_id == AGENT


async def test_to_repeat_it_changes_nothing(metadata: MetadataStore) -> None:
    await metadata.restore(REBUILT)
    lease = await acquire(metadata, PARTITION)
    await metadata.commit_segments([segment_commit(lease, 30, 50)])

    await metadata.restore(REBUILT)

    (row,) = await metadata.load_partitions([PARTITION])
    assert row.next_offset == 50


async def test_a_topic_that_is_there_is_left_alone_and_nothing_is_written(metadata: MetadataStore) -> None:
    await make_topic(metadata, name="orders")
    other = replace(TOPIC, name="payments", topic_id=UUID(int=78))

    with pytest.raises(AlreadyExists, match="orders"):
        await metadata.restore(replace(REBUILT, topics=(other, TOPIC)))

    assert [topic.name for topic in await metadata.list_topics()] == ["orders"]
    assert await metadata.list_wal_object_keys() == []


async def test_it_goes_beside_other_topics(metadata: MetadataStore) -> None:
    await make_topic(metadata, name="others")

    await metadata.restore(REBUILT)

    assert [topic.name for topic in await metadata.list_topics()] == ["orders", "others"]


async def test_a_bucket_without_topics_is_restored_as_nothing(metadata: MetadataStore) -> None:
    await metadata.restore(RebuiltMetadata(topics=(), wal_objects=(), next_producer_id=0, wal_agent_id=""))

    assert await metadata.list_topics() == []
    assert await metadata.allocate_producer_ids(1) == 0
