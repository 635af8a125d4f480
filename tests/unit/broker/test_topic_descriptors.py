"""Descriptors of topics: there soon after every change, written by who should, and never in anybody's way."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from uuid import uuid4

import pytest

from log_parts.engines import Bench, Running, bench, finishes
from log_parts.waiting import until
from streamhouse.broker.topic_descriptors import TopicDescriptors
from streamhouse.broker.topics import Topics
from streamhouse.format.object_keys import TOPICS_PREFIX, parse_topic_descriptor_key, topic_descriptor_key
from streamhouse.format.topic_descriptor import TopicDescriptor, decode_descriptor, encode_descriptor
from streamhouse.model.topic import Topic
from streamhouse.objects.faulty import Operation

OFTEN_MS = 20
SELDOM_MS = 10**9


@dataclass
class DescribedNode:
    """Topics whose descriptors are kept. `leads_all` is whether it leads them, which was asked so many times."""

    running: Running
    shared: Bench
    leads_all: bool = True
    asked: int = 0
    descriptors: TopicDescriptors = field(init=False)
    topics: Topics = field(init=False)

    def __post_init__(self) -> None:
        self.descriptors = TopicDescriptors(self.shared.objects, self.shared.clock, leads=self.leads)
        self.topics = Topics(
            store=self.shared.metadata,
            engine=self.running.engine,
            node_defaults={},
            default_partitions=2,
            place=self.running.place,
            descriptors=self.descriptors,
        )

    def leads(self, topic: Topic) -> bool:
        self.asked += 1
        return self.leads_all

    async def stored(self) -> list[TopicDescriptor]:
        """By key, each checked to be what its key says."""
        found = []
        async for item in self.shared.inner.list(TOPICS_PREFIX):
            descriptor = decode_descriptor(await self.shared.inner.get(item.key))
            key = parse_topic_descriptor_key(item.key)
            assert key is not None
            assert (key.topic_id, key.version) == (descriptor.topic.topic_id, descriptor.version)
            found.append(descriptor)
        return found

    async def until_stored(self, *expected: TopicDescriptor) -> None:
        async def wait() -> None:
            while await self.stored() != list(expected):
                await self.shared.clock.sleep_ms(1)

        await finishes(wait(), f"the descriptors are not {expected}")


@asynccontextmanager
async def described(*, leads_all: bool = True) -> AsyncIterator[DescribedNode]:
    async with bench() as shared, shared.engine() as running:
        node = DescribedNode(running, shared, leads_all)
        try:
            yield node
        finally:
            await node.descriptors.close()


@pytest.mark.parametrize("leads_all", [True, False])
async def test_a_topic_has_its_descriptor_when_it_is_created(leads_all: bool) -> None:
    async with described(leads_all=leads_all) as node:
        topic = await node.topics.create("orders", 3, {"cleanup.policy": "compact"})

        assert await node.stored() == [TopicDescriptor(topic, 1)]


async def test_a_changed_config_has_the_next_version_and_the_old_one_goes() -> None:
    async with described() as node:
        topic = await node.topics.create("orders", 1, {})
        for retention in ("1", "2"):
            await node.topics.configure(topic, {"retention.ms": retention})

        await node.until_stored(TopicDescriptor(replace(topic, config={"retention.ms": "2"}), 3))


async def test_a_topic_that_grew_is_described_so_when_that_is_answered() -> None:
    async with described() as node:
        topic = await node.topics.create("orders", 1, {})

        grown = await node.topics.grow(topic, 4)

        assert await node.stored() == [TopicDescriptor(grown, 2)]


async def test_a_change_that_another_node_made_is_written_by_the_leader_and_by_nobody_else() -> None:
    async with described() as node:
        topic = await node.topics.create("orders", 1, {})
        changed = await node.shared.metadata.set_topic_config(topic, {"retention.ms": "9"})
        node.leads_all = False
        await node.topics.refresh()
        assert await node.stored() == [TopicDescriptor(topic, 1)]

        node.leads_all = True
        node.descriptors.start(lambda: node.topics, interval_ms=OFTEN_MS, check_ms=SELDOM_MS)

        await node.until_stored(TopicDescriptor(changed, 2))


async def test_a_topic_without_one_gets_it_and_what_is_described_is_not_asked_about_again() -> None:
    async with described() as node:
        topic = await node.shared.metadata.create_topic("old", uuid4(), 1, {})
        await node.topics.refresh()
        node.descriptors.start(lambda: node.topics, interval_ms=OFTEN_MS, check_ms=SELDOM_MS)

        await node.until_stored(TopicDescriptor(topic, 1))
        rounds = node.asked + 3
        await until(lambda: node.asked >= rounds, "the topics were looked at again")

        assert node.shared.objects.calls[Operation.LIST] == 1


async def test_what_was_written_is_looked_at_again_now_and_then() -> None:
    async with described() as node:
        topic = await node.topics.create("orders", 1, {})
        other = replace(topic, config={"retention.ms": "1"})
        stray = topic_descriptor_key(topic.topic_id, 2, uuid4())
        await node.shared.inner.create(stray, [encode_descriptor(TopicDescriptor(other, 2))])

        node.descriptors.start(lambda: node.topics, interval_ms=OFTEN_MS, check_ms=OFTEN_MS)

        await node.until_stored(TopicDescriptor(topic, 3))


async def test_an_object_store_that_is_away_keeps_nobody_from_creating_a_topic() -> None:
    async with described() as node:
        node.shared.objects.fail(Operation.LIST, times=2)
        node.shared.objects.fail(Operation.CREATE, times=2)

        topic = await finishes(node.topics.create("orders", 1, {}), "the creation")
        assert await node.stored() == []
        node.descriptors.start(lambda: node.topics, interval_ms=OFTEN_MS, check_ms=SELDOM_MS)

        await node.until_stored(TopicDescriptor(topic, 1))


async def test_an_object_store_that_hangs_keeps_nobody_from_creating_a_topic() -> None:
    async with described() as node:
        held = node.shared.objects.hold(Operation.CREATE)
        topic = await finishes(node.topics.create("orders", 1, {}), "the creation")
        await node.topics.configure(topic, {"retention.ms": "5"})
        assert await node.stored() == []

        held.release()

        await node.until_stored(TopicDescriptor(replace(topic, config={"retention.ms": "5"}), 2))


async def test_a_deleted_topic_loses_its_descriptor_and_others_keep_theirs() -> None:
    async with described() as node:
        deleted = await node.topics.create("deleted", 1, {})
        kept = await node.topics.create("kept", 1, {})
        node.shared.objects.fail(Operation.LIST, times=2)
        node.shared.objects.fail(Operation.DELETE, times=2)

        await node.topics.delete(deleted)

        await node.until_stored(TopicDescriptor(kept, 1))


async def test_what_the_metadata_store_has_never_heard_of_is_left_alone() -> None:
    """It may be what a lost one knew."""
    async with described() as node:
        lost = Topic(name="lost", topic_id=uuid4(), partition_count=1, config={}, created_at_ms=1)
        key = topic_descriptor_key(lost.topic_id, 1, uuid4())
        await node.shared.inner.create(key, [encode_descriptor(TopicDescriptor(lost, 1))])
        node.descriptors.start(lambda: node.topics, interval_ms=OFTEN_MS, check_ms=OFTEN_MS)

        topic = await node.topics.create("orders", 1, {})
        await node.topics.delete(topic)

        await node.until_stored(TopicDescriptor(lost, 1))


async def test_who_does_not_lead_a_topic_writes_nothing_over_what_its_leader_wrote() -> None:
    async with described(leads_all=False) as node:
        topic = await node.topics.create("orders", 1, {})
        newer = replace(topic, config={"retention.ms": "7"})

        await node.descriptors.created(newer)

        assert await node.stored() == [TopicDescriptor(topic, 1)]
