"""What every metadata store tells its subscribers, line by line of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from behaviour.cluster import (
    TIMEOUT_MS,
    Heard,
    accepted_transfer,
    acquire_with_local_wal,
    agent,
    begin_transfer,
    complete,
    listening,
    settled,
    wal_commit,
)
from behaviour.metadata_stores import (
    AGENT,
    OTHER,
    TTL_MS,
    MetadataStoreKind,
    PostgresKind,
    acquire,
    epoch_start,
    make_topic,
    segment_commit,
)
from streamhouse.metadata.cluster import Change, Transfer
from streamhouse.metadata.groups import ShardLease
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.model.names import TopicPartition


@pytest.fixture
def actor(metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind) -> MetadataStore:
    """Who makes the changes that `metadata` hears of: another process, where there can be one."""
    return other_process if isinstance(metadata_kind, PostgresKind) else metadata


@dataclass
class Cluster:
    """An agent with a lease and an accepted transfer of each of two partitions, and with a shard; a third partition is
    free."""

    store: MetadataStore
    topic: list[TopicPartition]
    leases: list[Lease]
    transfers: list[Transfer]
    shard: ShardLease


async def cluster(store: MetadataStore) -> Cluster:
    await store.register_agent(agent(), 0)
    topic = await make_topic(store, 3)
    leases = [await acquire_with_local_wal(store, partition) for partition in topic[:2]]
    transfers = [await accepted_transfer(store, lease) for lease in leases]
    (shard,) = await store.acquire_shards(AGENT, [0], TTL_MS)
    assert shard is not None
    return Cluster(store, topic, leases, transfers, shard)


async def grow(cluster: Cluster) -> None:
    (topic,) = await cluster.store.list_topics()
    await cluster.store.grow_topic(topic, 5)


async def configure(cluster: Cluster) -> None:
    (topic,) = await cluster.store.list_topics()
    await cluster.store.set_topic_config(topic, {"a": "b"})


CHANGES: dict[str, tuple[Callable[[Cluster], Awaitable[object]], set[Change]]] = {
    "a new agent": (lambda c: c.store.register_agent(agent(OTHER), 0), {Change.AGENTS}),
    "an agent again": (lambda c: c.store.register_agent(agent(zone="elsewhere"), 0), {Change.AGENTS}),
    "a draining agent": (lambda c: c.store.drain_agent(AGENT), {Change.AGENTS}),
    "an agent that left": (lambda c: c.store.deregister_agent(AGENT), {Change.AGENTS}),
    "a new topic": (lambda c: make_topic(c.store, name="another"), {Change.TOPICS}),
    "a new config": (lambda c: configure(c), {Change.TOPICS}),
    "a grown topic": (lambda c: grow(c), {Change.TOPICS}),
    "a deleted topic": (lambda c: c.store.delete_topic(c.topic[0].topic_id), {Change.TOPICS}),
    "a first lease": (lambda c: acquire(c.store, c.topic[2]), {Change.LEASES}),
    "a lease again": (lambda c: acquire(c.store, c.topic[0]), {Change.LEASES}),
    "a released lease": (lambda c: c.store.release_leases(AGENT, c.leases, drained=False), {Change.LEASES}),
    "a drained lease": (lambda c: c.store.release_leases(AGENT, c.leases, drained=True), {Change.LEASES}),
    "a disk needed no longer": (
        lambda c: c.store.begin_epochs(AGENT, [epoch_start(c.leases[0], 0, in_local_wal=False)]),
        {Change.LEASES},
    ),
    "a pin": (lambda c: c.store.pin_partition(c.topic[2], OTHER), {Change.LEASES}),
    "chosen owners": (lambda c: c.store.decide_owners(0, (), {c.topic[2]: OTHER}), {Change.LEASES}),
    "a shard": (lambda c: c.store.acquire_shards(AGENT, [1], TTL_MS), {Change.LEASES}),
    "a shard asked for": (lambda c: c.store.claim_shards(OTHER, [0], TTL_MS), {Change.LEASES}),
    "a released shard": (lambda c: c.store.release_shards(AGENT, [c.shard]), {Change.LEASES}),
    "a rejection": (lambda c: c.store.reject_transfers(OTHER, [c.transfers[0].transfer_id], ""), {Change.TRANSFERS}),
    "a completion": (lambda c: complete(c.store, c.transfers[0], c.leases[0]), {Change.TRANSFERS, Change.LEASES}),
}

NO_CHANGES: dict[str, Callable[[Cluster], Awaitable[object]]] = {
    "a heartbeat": lambda c: c.store.heartbeat_agent(AGENT),
    "a renewal": lambda c: c.store.renew_leases(AGENT, c.leases, TTL_MS),
    "a renewal of a shard": lambda c: c.store.renew_shards(AGENT, [c.shard], TTL_MS),
    "a lease refused": lambda c: c.store.acquire_leases(OTHER, c.topic[:2], TTL_MS),
    "a shard refused": lambda c: c.store.acquire_shards(OTHER, [0], TTL_MS),
    "owners that came too late": lambda c: c.store.decide_owners(7, (), {c.topic[2]: OTHER}),
    "a release of nothing": lambda c: c.store.release_leases(OTHER, c.leases, drained=True),
    "a transfer refused": lambda c: c.store.begin_transfers(OTHER, [(c.topic[0], AGENT)], TIMEOUT_MS),
    "an acceptance of nothing": lambda c: c.store.accept_transfers(OTHER, [c.transfers[0].transfer_id]),
    "a completion refused": lambda c: complete(c.store, c.transfers[0], c.leases[0], 99),
    "a commit of a segment": lambda c: c.store.commit_segments([segment_commit(c.leases[0], 0, 10)]),
    "a commit of a WAL object": lambda c: c.store.commit_wal_objects([wal_commit((c.leases[0], 0, 10))]),
    "looking": lambda c: c.store.list_transfers(),
    "one that leaves and was not there": lambda c: c.store.deregister_agent("nobody"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_a_change_that_anybody_makes_is_told(metadata: MetadataStore, actor: MetadataStore, name: str) -> None:
    change, expected = CHANGES[name]
    parts = await cluster(actor)
    async with listening(metadata) as heard:
        await change(parts)
        await heard.until(*expected)
        await settled(metadata)
        assert set(heard.changes) >= expected
        # A deleted topic takes its leases and transfers along, which may be told as well.
        assert name == "a deleted topic" or set(heard.changes) == expected | {Change.AGENTS}


@pytest.mark.parametrize("name", NO_CHANGES)
async def test_what_changes_nothing_for_others_is_not_told(
    metadata: MetadataStore, actor: MetadataStore, name: str
) -> None:
    parts = await cluster(actor)
    async with listening(metadata) as heard:
        await NO_CHANGES[name](parts)
        await settled(metadata)
        assert set(heard.changes) == {Change.AGENTS}  # that it settled


async def test_every_step_of_a_transfer_is_told(
    metadata: MetadataStore, actor: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(actor)
    lease = await acquire(actor, partition)
    async with listening(metadata) as heard:
        transfer = await begin_transfer(actor, lease)
        await heard.until(Change.TRANSFERS)
        heard.forget()
        await actor.accept_transfers(OTHER, [transfer.transfer_id])
        await heard.until(Change.TRANSFERS)
        await metadata_kind.pass_time(TIMEOUT_MS)
        await settled(metadata)
        heard.forget()
        await actor.list_transfers()
        await heard.until(Change.TRANSFERS)


async def test_an_unclean_election_is_told(
    metadata: MetadataStore, actor: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(actor)
    await acquire_with_local_wal(actor, partition)
    await metadata_kind.pass_time(TTL_MS)
    async with listening(metadata) as heard:
        await actor.elect_unclean(partition)
        await heard.until(Change.LEASES)


async def test_all_subscribers_are_told_and_none_that_ended(metadata: MetadataStore, actor: MetadataStore) -> None:
    async with listening(metadata) as first:
        second, third = Heard(), Heard()
        end_second, end_third = metadata.subscribe(second), metadata.subscribe(third)
        await make_topic(actor)
        for heard in (first, second, third):
            await heard.until(Change.TOPICS)
        end_third()
        end_third()
        third.forget()
        await actor.register_agent(agent(), 0)
        for heard in (first, second):
            await heard.until(Change.AGENTS)
        assert third.changes == []
        end_second()


async def test_a_subscriber_that_fails_keeps_nobody_from_being_told(
    metadata: MetadataStore, actor: MetadataStore
) -> None:
    def fail(change: Change) -> None:
        raise ValueError(change)

    failures: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context["exception"]))
    end = metadata.subscribe(fail)
    async with listening(metadata) as heard:
        failures.clear()
        await make_topic(actor)
        await heard.until(Change.TOPICS)
    end()
    assert [str(failure) for failure in failures][:1] == [str(Change.TOPICS)]


async def test_a_closed_store_tells_nothing(metadata_kind: MetadataStoreKind) -> None:
    store = await metadata_kind.open()
    await store.close()
    end = store.subscribe(Heard())
    end()


async def test_who_comes_back_from_the_dead_is_told(
    metadata: MetadataStore, actor: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(actor)
    await actor.register_agent(agent(), 0)
    await acquire(actor, partition)
    await metadata_kind.pass_time(TTL_MS)
    await acquire(actor, partition, OTHER)
    async with listening(metadata) as heard:
        await settled(metadata)
        heard.forget()
        await actor.heartbeat_agent(AGENT)
        await heard.until(Change.AGENTS)
