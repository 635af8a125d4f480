"""Topics: in memory what the metadata store has, also when its answers get lost."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from uuid import uuid4

import pytest

from log_parts.batches import sent
from log_parts.engines import bench
from log_parts.waiting import until
from streamhouse.model.errors import (
    AlreadyExists,
    InvalidConfig,
    InvalidInput,
    InvalidName,
    InvalidPartitions,
    MetadataUnavailable,
    NotFound,
    NotLeader,
    PolicyViolation,
)
from streamhouse.model.topic import MAX_PARTITIONS


async def test_a_topic_that_is_created_is_found_by_name_and_id_and_led() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2, retention_ms="5")

        assert running.topics.find("orders") == running.topics.find_id(topic.topic_id) == topic
        assert running.topics.config_of(topic)["retention.ms"] == "5"
        by_key = running.topics.leader_by_key
        assert by_key(b"orders", 1, is_id=False) is running.leader(partition=1)
        assert by_key(topic.topic_id.bytes, 0, is_id=True) is running.leader()
        assert by_key(b"orders", 0, is_id=True) is None
        assert [by_key(b"orders", number, is_id=False) for number in (-1, 2)] == [None, None]


@pytest.mark.parametrize("count", [0, -1, MAX_PARTITIONS + 1])
async def test_a_number_of_partitions_that_is_none_is_refused(count: int) -> None:
    async with bench() as shared, shared.engine() as running:
        with pytest.raises(InvalidInput):
            await running.topics.create("orders", count, {})


async def test_what_is_wrong_with_a_topic_is_said_before_anything_is_stored() -> None:
    async with bench() as shared, shared.engine() as running:
        with pytest.raises(InvalidName):
            await running.topics.create("a/b", 1, {})
        with pytest.raises(InvalidConfig):
            await running.topics.create("orders", 1, {"retention.ms": "soon"})

        assert await shared.metadata.list_topics() == []


async def test_many_who_want_the_same_new_topic_make_one() -> None:
    async with bench() as shared, shared.engine() as running:
        topics = await asyncio.gather(*(running.topics.ensure("orders") for _ in range(20)))

        assert len({topic.topic_id for topic in topics}) == 1
        assert len(await shared.metadata.list_topics()) == 1


async def test_a_topic_made_again_under_its_name_is_another_topic() -> None:
    async with bench() as shared, shared.engine() as running:
        first = await running.create()
        await running.produce(sent(), sent())
        await running.topics.delete(first)

        second = await running.create()

        assert second.topic_id != first.topic_id
        assert running.leader().next_offset == 0
        assert running.topics.find_id(first.topic_id) is None


async def test_a_deleted_topic_is_gone_and_deleting_it_again_says_so() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        await running.topics.delete(topic)

        assert running.topics.find("orders") is None
        assert running.topics.leader_by_key(b"orders", 0, is_id=False) is None
        with pytest.raises(NotFound):
            await running.topics.delete(topic)


async def test_configs_that_are_replaced_are_checked_first() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(retention_ms="5")
        with pytest.raises(InvalidConfig):
            await running.topics.configure(topic, {"retention.ms": "x"})
        await running.topics.configure(topic, {"segment.ms": "7"}, validate_only=True)
        assert running.topics.get("orders").config == {"retention.ms": "5"}

        await running.topics.configure(topic, {"segment.ms": "7"})

        assert running.topics.get("orders").config == {"segment.ms": "7"}
        assert running.leader().config.segment_age_ms == 7


@pytest.mark.parametrize("step", ["create_topic", "acquire_leases", "load_partitions", "begin_epochs", "renew_leases"])
@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_topic_whose_creation_broke_off_can_be_created_again(step: str, lost_answer: bool) -> None:
    """Nobody must have to start the node again to use the name."""
    async with bench() as shared, shared.engine(lease_ttl=2_000, lease_renewal=20) as running:
        shared.metadata.fail(step, times=1_000, lost_answer=lost_answer)
        with pytest.raises(MetadataUnavailable):
            await running.create()
        shared.metadata.heal()

        try:
            await running.create()
        except AlreadyExists:
            pass  # if it is told so, it must be there
        await running.place()  # as the next look does
        await until(lambda: running.leader().writable_until_ms > 0, "its lease is renewed")
        await running.produce(sent())

        assert running.leader().next_offset == 1


async def test_a_topic_whose_deletion_lost_its_answer_is_gone_in_the_end() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        shared.metadata.fail("delete_topic", lost_answer=True)
        with pytest.raises(MetadataUnavailable):
            await running.topics.delete(topic)

        try:
            await running.topics.delete(topic)
        except NotFound:
            pass
        assert running.topics.find("orders") is None

        await running.create()
        await running.produce(sent())


async def test_a_topic_is_deleted_although_its_configs_have_changed_since_it_was_looked_up() -> None:
    async with bench() as shared, shared.engine() as running:
        looked_up = await running.create()
        await running.topics.configure(looked_up, {"retention.ms": "7"})

        await running.topics.delete(looked_up)

        assert running.topics.find("orders") is None
        await running.create()


async def test_what_another_node_deleted_a_moment_ago_can_be_made_again() -> None:
    async with bench() as shared, shared.engine() as running:
        gone = await running.create("orders")
        await shared.metadata.delete_topic(gone.topic_id)

        assert (await running.create("orders")).topic_id != gone.topic_id


async def test_what_other_nodes_did_to_topics_is_seen_at_the_next_look() -> None:
    async with bench() as shared, shared.engine() as running:
        kept, gone = await running.create("kept"), await running.create("gone")
        leader = running.leader("gone")
        await shared.metadata.delete_topic(gone.topic_id)
        await shared.metadata.set_topic_config(kept, {"segment.ms": "7"})
        await shared.metadata.create_topic("come", uuid4(), 1, {})

        await running.topics.refresh()

        assert [topic.name for topic in running.topics] == ["come", "kept"]
        assert running.leader("kept").config.segment_age_ms == 7
        assert leader.removed
        with pytest.raises(NotLeader):
            running.leader("come")


async def test_a_topic_that_another_node_deleted_was_just_deleted_here_too() -> None:
    async with bench() as shared, shared.engine() as running:
        running.topics._auto_create_delay_ms = 10_000
        topic = await running.create()
        await shared.metadata.delete_topic(topic.topic_id)
        assert not running.topics.was_just_deleted("orders")

        await running.topics.refresh()

        assert running.topics.was_just_deleted("orders")
        assert not running.topics.was_just_deleted("others")


async def test_a_topic_that_another_node_made_meanwhile_is_found_when_it_is_wanted() -> None:
    async with bench() as shared, shared.engine() as running:
        made = await shared.metadata.create_topic("orders", uuid4(), 3, {})

        assert await running.topics.ensure("orders") == made


async def test_a_topic_that_grows_is_led_in_its_new_partitions_by_all_who_hold_on_to_it() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)
        first = running.leader()
        held = running.topics.leaders_named(b"orders")
        assert held is not None

        grown = await running.topics.grow(topic, 4)

        assert grown == running.topics.get("orders") == running.topics.find_id(topic.topic_id)
        assert grown.partition_count == len(held) == 4
        assert running.leader() is first
        assert held[3] is running.leader(partition=3) is running.topics.leader_by_key(b"orders", 3, is_id=False)
        assert running.topics.leader_by_key(topic.topic_id.bytes, 3, is_id=True) is held[3]
        await running.produce(sent(), leader=running.leader(partition=3))


@pytest.mark.parametrize("count", [-1, 0, 1, 2, MAX_PARTITIONS + 1])
async def test_a_topic_does_not_grow_to_what_is_no_growth(count: int) -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)
        with pytest.raises(InvalidPartitions):
            await running.topics.grow(topic, count)
        assert await shared.metadata.list_topics() == [topic]


async def test_a_topic_whose_partitions_are_fixed_grows_only_when_they_are_no_longer() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2, streamhouse_partitions_fixed="true")
        with pytest.raises(PolicyViolation, match="fixed"):
            await running.topics.grow(topic, 3)

        await running.topics.configure(topic, {})

        assert (await running.topics.grow(topic, 3)).partition_count == 3


async def test_that_partitions_were_fixed_through_another_node_a_moment_ago_counts() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)
        await shared.metadata.set_topic_config(topic, {"streamhouse.partitions.fixed": "true"})

        with pytest.raises(PolicyViolation):
            await running.topics.grow(topic, 3)

        (stored,) = await shared.metadata.list_topics()
        assert stored.partition_count == 2


async def test_a_config_that_was_changed_through_another_node_a_moment_ago_stays_changed() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create()
        await shared.metadata.set_topic_config(topic, {"retention.ms": "5"})

        await running.topics.change_config(topic, lambda own: {**own, "segment.ms": "7"})

        (stored,) = await shared.metadata.list_topics()
        assert stored.config == {"retention.ms": "5", "segment.ms": "7"}


async def test_a_check_of_a_growth_changes_nothing() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)

        checked = await running.topics.grow(topic, 3, validate_only=True)

        assert checked.partition_count == 3
        assert await shared.metadata.list_topics() == [topic]


@pytest.mark.parametrize(("ours", "theirs", "outcome"), [(5, 4, 5), (4, 4, 4), (4, 5, None)])
async def test_who_grows_what_another_node_has_grown_a_moment_ago(ours: int, theirs: int, outcome: int | None) -> None:
    """The larger number stands; who wanted the same has it; who wanted less is told so."""
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)
        await shared.metadata.grow_topic(topic, theirs)

        if outcome is None:
            with pytest.raises(InvalidPartitions):
                await running.topics.grow(topic, ours)
        else:
            assert (await running.topics.grow(topic, ours)).partition_count == outcome

        (stored,) = await shared.metadata.list_topics()
        assert stored == running.topics.get("orders")
        assert stored.partition_count == max(ours, theirs)


@pytest.mark.parametrize("step", ["grow_topic", "acquire_leases", "begin_epochs"])
@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_growth_that_broke_off_is_finished_by_the_next_look(step: str, lost_answer: bool) -> None:
    async with bench() as shared, shared.engine(lease_ttl=2_000, lease_renewal=20) as running:
        topic = await running.create(partitions=1)
        shared.metadata.fail(step, lost_answer=lost_answer)
        with pytest.raises(MetadataUnavailable):
            await running.topics.grow(topic, 2)

        await running.topics.refresh()
        with suppress(InvalidPartitions):  # if it is told so, it must be there
            await running.topics.grow(topic, 2)
        await running.place()
        await until(lambda: running.leader(partition=1).writable_until_ms > 0, "its lease is renewed")

        await running.produce(sent(), leader=running.leader(partition=1))


async def test_that_another_node_has_grown_a_topic_is_seen_at_the_next_look_and_told() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)
        told: list[int] = []
        running.topics._changed = lambda: told.append(running.topics.get("orders").partition_count)
        await shared.metadata.grow_topic(topic, 4)

        await running.topics.refresh()

        assert told == [4]
        assert [leader is None for leader in running.topics.leaders_of(topic)] == [False, False, True, True]
        with pytest.raises(NotLeader):
            running.leader(partition=3)


async def test_a_growth_that_comes_with_the_answer_to_another_change_is_told_too() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=2)
        told: list[int] = []
        running.topics._changed = lambda: told.append(running.topics.get("orders").partition_count)
        await shared.metadata.grow_topic(topic, 4)

        await running.topics.configure(topic, {"retention.ms": "7"})

        assert told == [4]


async def test_a_topic_that_grew_elsewhere_is_deleted_with_all_that_is_led_of_it() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=1)
        await running.topics.grow(topic, 3)
        leaders = [running.leader(partition=number) for number in range(3)]

        await running.topics.delete(topic)

        assert [leader.removed for leader in leaders] == [True] * 3
        assert not running.engine.leadership.leaders


async def test_a_partition_that_another_node_added_a_moment_ago_is_found_when_it_is_asked_for() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await running.create(partitions=1)
        grown = await shared.metadata.grow_topic(topic, 3)

        assert await running.topics.look_up("orders", 2) == grown
        for partition in (-1, 3, MAX_PARTITIONS):
            with pytest.raises(NotFound):
                await running.topics.look_up("orders", partition)


async def test_topics_that_collided_before_that_was_refused_go_on() -> None:
    async with bench() as shared, shared.engine() as running:
        await running.create("a.b")
        await running.create("other")

        def rename(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE topics SET name = 'a_b' WHERE name = 'other'")
            for table in ("partitions", "partition_leases"):
                connection.execute(f"UPDATE {table} SET topic = 'a_b' WHERE topic = 'other'")

        await shared.metadata._database.write(rename)
        await running.topics.refresh()

        for name in ("a.b", "a_b"):
            topic = running.topics.get(name)
            await running.topics.configure(topic, {"retention.ms": "7"})
            assert (await running.topics.grow(topic, 2)).config == {"retention.ms": "7"}
            await running.produce(sent(), leader=running.leader(name, 1))


@pytest.mark.parametrize(("own", "least"), [(2**20, 2**20), (2**21, 2**20), (4096, 4096)])
async def test_a_segment_is_not_to_be_smaller_than_kafka_lets_it_be_or_than_the_nodes_own(own: int, least: int) -> None:
    async with bench() as shared, shared.engine(segment_bytes=own) as running:
        with pytest.raises(InvalidConfig, match=r"segment\.bytes"):
            await running.topics.create("orders", 1, {"segment.bytes": str(least - 1)})
        topic = await running.topics.create("orders", 1, {"segment.bytes": str(least)})
        with pytest.raises(InvalidConfig, match=r"segment\.bytes"):
            await running.topics.configure(topic, {"segment.bytes": str(least - 1)})


async def test_a_segment_that_is_smaller_already_may_stay_so_while_other_configs_change() -> None:
    async with bench() as shared, shared.engine() as running:
        topic = await shared.metadata.create_topic("orders", uuid4(), 1, {"segment.bytes": "2048"})
        await running.topics.refresh()

        await running.topics.configure(topic, {"segment.bytes": "2048", "retention.ms": "7"})
        with pytest.raises(InvalidConfig):
            await running.topics.configure(topic, {"segment.bytes": "2049"})

        assert running.topics.get("orders").config == {"segment.bytes": "2048", "retention.ms": "7"}


async def test_topics_are_listed_by_name() -> None:
    async with bench() as shared, shared.engine() as running:
        for name in ("b", "a", "c"):
            await running.create(name)

        assert [topic.name for topic in running.topics] == ["a", "b", "c"]
        assert len(running.topics) == 3
