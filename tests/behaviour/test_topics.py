"""What every metadata store does with topics, line by line of the protocol."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from uuid import uuid4

import pytest

from behaviour.coordinators import GROUP, at, coordinate
from behaviour.metadata_stores import (
    AGENT,
    TTL_MS,
    MetadataStoreKind,
    acquire,
    epoch_start,
    make_topic,
    segment_commit,
    segments_of,
)
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import AlreadyExists, InvalidInput, InvalidName, NotFound
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic

HOSTILE_NAMES = ["'; DROP TABLE topics; --", '"; DELETE FROM segments; --', "%s $1 :name ?", "<script>", "naïve ✓ 漢字",
                 "\\", "x" * 5000]  # fmt: skip


async def test_a_new_topic_has_its_partitions_in_the_same_moment(metadata: MetadataStore) -> None:
    topic_id = uuid4()
    topic = await metadata.create_topic("orders", topic_id, 3, {"retention.ms": "1000"})
    assert (topic.name, topic.topic_id, topic.partition_count) == ("orders", topic_id, 3)
    assert topic.config == {"retention.ms": "1000"}
    assert topic.created_at_ms > 0
    rows = await metadata.load_partitions([TopicPartition(topic_id, number) for number in range(3)])
    assert [(row.topic, row.log_start_offset, row.next_offset, row.producer_state, row.epochs) for row in rows] == [
        ("orders", 0, 0, b"", ())
    ] * 3
    with pytest.raises(NotFound):
        await metadata.load_partitions([TopicPartition(topic_id, 3)])


async def test_a_name_that_is_taken_is_refused_and_changes_nothing(metadata: MetadataStore) -> None:
    first = await metadata.create_topic("orders", uuid4(), 1, {})
    with pytest.raises(AlreadyExists):
        await metadata.create_topic("orders", uuid4(), 5, {"retention.ms": "1"})
    assert await metadata.list_topics() == [first]


async def test_creating_again_with_the_same_id_is_a_retry_and_gives_the_topic(metadata: MetadataStore) -> None:
    topic_id = uuid4()
    first = await metadata.create_topic("orders", topic_id, 2, {})
    assert await metadata.create_topic("orders", topic_id, 2, {}) == first


async def test_of_many_creators_of_one_name_exactly_one_wins(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    outcomes = await asyncio.gather(
        *(store.create_topic("orders", uuid4(), 4, {}) for store in (metadata, other_process) for _ in range(6)),
        return_exceptions=True,
    )
    assert Counter(isinstance(outcome, AlreadyExists) for outcome in outcomes) == {True: 11, False: 1}
    (topic,) = await metadata.list_topics()
    assert topic in outcomes
    assert len(await metadata.load_partitions([TopicPartition(topic.topic_id, number) for number in range(4)])) == 4


async def test_of_two_names_that_collide_one_is_made_though_two_ask_at_once(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    for number in range(5):
        names = [f"orders.{number}", f"orders_{number}"]
        made = await asyncio.gather(
            *(
                store.create_topic(name, uuid4(), 1, {})
                for store, name in zip((metadata, other_process), names, strict=True)
            ),
            return_exceptions=True,
        )
        assert {type(outcome) for outcome in made} == {Topic, InvalidName}


@pytest.mark.parametrize(
    ("first", "second"), [("a.b", "a_b"), ("a_b", "a.b"), ("a._c.d", "a_.c_d"), ("_", "."), ("x_", "x.")]
)
async def test_names_that_differ_only_in_dots_and_underscores_collide(
    metadata: MetadataStore, first: str, second: str
) -> None:
    topic = await metadata.create_topic(first, uuid4(), 1, {})
    with pytest.raises(InvalidName, match="collides"):
        await metadata.create_topic(second, uuid4(), 1, {})
    with pytest.raises(AlreadyExists):
        await metadata.create_topic(first, uuid4(), 1, {})
    assert await metadata.create_topic(first, topic.topic_id, 1, {}) == topic
    await metadata.create_topic(f"{second}-", uuid4(), 1, {})
    await metadata.create_topic(first.replace("a", "A").replace("_", "z").replace(".", "z") + "x", uuid4(), 1, {})


async def test_topics_are_listed_by_name(metadata: MetadataStore) -> None:
    assert await metadata.list_topics() == []
    for name in ("b", "a", "C", "_", "a.b", "a-b"):
        await metadata.create_topic(name, uuid4(), 1, {})
    assert [topic.name for topic in await metadata.list_topics()] == ["C", "_", "a", "a-b", "a.b", "b"]


async def test_a_topic_that_grows_has_its_new_partitions_in_the_same_moment(metadata: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 2, {"retention.ms": "1"})
    await acquire(metadata, TopicPartition(topic.topic_id, 1))

    grown = await metadata.grow_topic(topic, 5)

    assert grown == replace(topic, partition_count=5)
    assert await metadata.list_topics() == [grown]
    rows = await metadata.load_partitions([TopicPartition(topic.topic_id, number) for number in range(5)])
    assert [(row.topic, row.log_start_offset, row.next_offset, row.epochs) for row in rows[2:]] == [
        ("orders", 0, 0, ())
    ] * 3
    placements = await metadata.list_placements()
    assert [(place.partition.partition, place.epoch) for place in placements] == [
        (0, 0),
        (1, 1),
        (2, 0),
        (3, 0),
        (4, 0),
    ]
    with pytest.raises(NotFound):
        await metadata.load_partitions([TopicPartition(topic.topic_id, 5)])


@pytest.mark.parametrize("change", ["grown", "configured"])
async def test_a_topic_that_is_another_by_now_does_not_grow(metadata: MetadataStore, change: str) -> None:
    """Whoever asked has judged what is no longer so."""
    topic = await metadata.create_topic("orders", uuid4(), 2, {})
    changed = (
        await metadata.grow_topic(topic, 3)
        if change == "grown"
        else await metadata.set_topic_config(topic, {"streamhouse.partitions.fixed": "true"})
    )

    assert await metadata.grow_topic(topic, 5) == changed
    assert await metadata.list_topics() == [changed]
    with pytest.raises(NotFound):
        await metadata.load_partitions([TopicPartition(topic.topic_id, changed.partition_count)])


async def test_a_growth_that_is_repeated_gives_the_topic_as_it_grew(metadata: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 2, {})
    grown = await metadata.grow_topic(topic, 4)

    assert await metadata.grow_topic(topic, 4) == grown


async def test_of_many_who_grow_a_topic_exactly_one_does(metadata: MetadataStore, other_process: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 1, {})

    outcomes = await asyncio.gather(
        *(store.grow_topic(topic, count) for count in range(2, 8) for store in (metadata, other_process))
    )

    (stored,) = await metadata.list_topics()
    assert {outcome.partition_count for outcome in outcomes} == {stored.partition_count}
    placements = await metadata.list_placements()
    assert [place.partition.partition for place in placements] == list(range(stored.partition_count))


@pytest.mark.parametrize("count", [-1, 0, 1, 2])
async def test_a_topic_never_shrinks(metadata: MetadataStore, count: int) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 2, {})
    with pytest.raises(InvalidInput):
        await metadata.grow_topic(topic, count)
    assert await metadata.list_topics() == [topic]


async def test_a_topic_that_is_gone_does_not_grow(metadata: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 2, {})
    await metadata.delete_topic(topic.topic_id)
    with pytest.raises(NotFound):
        await metadata.grow_topic(topic, 3)


async def test_a_new_config_replaces_the_old_one(metadata: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 1, {"retention.ms": "1", "segment.bytes": "2000"})
    changed = await metadata.set_topic_config(topic, {"retention.ms": "5"})
    assert changed.config == {"retention.ms": "5"}
    assert await metadata.list_topics() == [changed]


async def test_the_config_of_a_topic_that_is_gone_cannot_be_set(metadata: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 1, {})
    await metadata.delete_topic(topic.topic_id)
    with pytest.raises(NotFound):
        await metadata.set_topic_config(topic, {})


async def test_the_config_of_a_topic_that_is_another_by_now_is_not_set(metadata: MetadataStore) -> None:
    """Whoever asked has made the new one from what is no longer so."""
    topic = await metadata.create_topic("orders", uuid4(), 1, {})
    changed = await metadata.set_topic_config(topic, {"retention.ms": "5"})

    assert await metadata.set_topic_config(topic, {"segment.ms": "7"}) == changed
    assert await metadata.set_topic_config(topic, {"retention.ms": "5"}) == changed, "an earlier try of this call"
    assert await metadata.list_topics() == [changed]


async def test_a_deleted_topic_takes_everything_with_it_and_leaves_its_objects_as_garbage(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    (kept,) = await make_topic(metadata, name="kept")
    for owner in (partition, kept):
        lease = await acquire(metadata, owner)
        await metadata.begin_epochs(AGENT, [epoch_start(lease, 0)])
        assert await metadata.commit_segments([segment_commit(lease, 0, 10)]) == [None]
        await metadata.commit_group_offsets(await coordinate(metadata), GROUP, None, {owner: at(1)})
    (segment,) = await segments_of(metadata, partition)
    await metadata.delete_topic(partition.topic_id)

    assert [topic.name for topic in await metadata.list_topics()] == ["kept"]
    with pytest.raises(NotFound):
        await metadata.load_partitions([partition])
    assert await segments_of(metadata, partition) == []
    assert list(await metadata.fetch_group_offsets(GROUP)) == [kept]
    assert await metadata.list_garbage(0, 10) == [segment.object_key]
    assert await metadata_kind.query("SELECT topic FROM partition_leases") == [("kept",)]
    assert await metadata_kind.query("SELECT count(*) FROM leader_epochs") == [(1,)]
    assert len(await segments_of(metadata, kept)) == 1


async def test_a_topic_that_is_gone_cannot_be_deleted(metadata: MetadataStore) -> None:
    topic = await metadata.create_topic("orders", uuid4(), 1, {})
    await metadata.delete_topic(topic.topic_id)
    with pytest.raises(NotFound):
        await metadata.delete_topic(topic.topic_id)


async def test_a_topic_made_again_under_its_name_is_another_topic(metadata: MetadataStore) -> None:
    """A zombie that led the old one at the same epoch can do nothing to the new one."""
    (old,) = await make_topic(metadata)
    zombie = await acquire(metadata, old)
    await metadata.delete_topic(old.topic_id)
    (new,) = await make_topic(metadata)
    lease = await acquire(metadata, new)
    assert (lease.agent_id, lease.epoch) == (zombie.agent_id, zombie.epoch)

    (answer,) = await metadata.commit_segments([segment_commit(zombie, 0, 10)])
    assert answer is not None
    assert await metadata.renew_leases(AGENT, [zombie], TTL_MS) == [None]
    await metadata.release_leases(AGENT, [zombie], drained=True)
    await metadata.begin_epochs(AGENT, [epoch_start(zombie, 7)])
    assert await metadata.acquire_leases("agent-9", [old], TTL_MS) == [None]
    (row,) = await metadata.load_partitions([new])
    assert (row.next_offset, row.epochs) == (0, ())
    assert await segments_of(metadata, new) == []
    assert await metadata.commit_segments([segment_commit(lease, 0, 5)]) == [None]


async def test_hostile_names_are_values_and_nothing_else(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for name in HOSTILE_NAMES:
        topic = await metadata.create_topic(name, uuid4(), 1, {name: name})
        partition = TopicPartition(topic.topic_id, 0)
        (lease,) = await metadata.acquire_leases(name, [partition], TTL_MS)
        assert lease is not None
        assert await metadata.commit_segments([segment_commit(lease, 0, 1)]) == [None]
        coordinator = await coordinate(metadata, name)
        stored = await metadata.commit_group_offsets(coordinator, name, None, {partition: at(1, name)})
        assert stored == {partition: None}
        assert (await metadata.fetch_group_offsets(name))[partition].metadata == name
        assert (await metadata.set_topic_config(topic, {name: name})).config == {name: name}
    assert sorted(topic.name for topic in await metadata.list_topics()) == sorted(HOSTILE_NAMES)
    assert await metadata_kind.query("SELECT count(*) FROM segments") == [(len(HOSTILE_NAMES),)]


async def test_text_that_no_database_can_hold_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    (orders,) = await metadata.list_topics()
    for text in ("a\0b", "\ud800"):
        with pytest.raises(InvalidInput):
            await metadata.create_topic(text, uuid4(), 1, {})
        with pytest.raises(InvalidInput):
            await metadata.create_topic("fine", uuid4(), 1, {"retention.ms": text})
        with pytest.raises(InvalidInput):
            await metadata.set_topic_config(orders, {text: "1"})
        with pytest.raises(InvalidInput):
            await metadata.acquire_leases(text, [partition], TTL_MS)
    assert [topic.name for topic in await metadata.list_topics()] == ["orders"]


async def test_a_topic_needs_a_partition(metadata: MetadataStore) -> None:
    with pytest.raises(InvalidInput):
        await metadata.create_topic("orders", uuid4(), 0, {})


async def test_the_cluster_id_is_made_once_and_kept(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    answers = set(await asyncio.gather(metadata.cluster_id(), other_process.cluster_id(), metadata.cluster_id()))
    assert len(answers) == 1
    later = await metadata_kind.open()
    assert {await later.cluster_id()} == answers
    await later.close()
    assert len(answers.pop()) == 22


async def test_what_was_done_is_there_for_a_store_that_is_opened_later(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.commit_segments([segment_commit(lease, 0, 10, producer_state=b"state")])
    before = (await metadata.list_topics(), await metadata.load_partitions([partition]))
    await metadata.close()
    later = await metadata_kind.open()
    assert (await later.list_topics(), await later.load_partitions([partition])) == before
    await later.close()
