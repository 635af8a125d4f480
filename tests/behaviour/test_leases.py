"""What every metadata store does with leases, line by line of the protocol."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind, acquire, make_topic
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.model.errors import InvalidInput
from streamhouse.model.names import TopicPartition


async def test_a_free_partition_is_granted_at_epoch_one(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    assert (lease.partition, lease.agent_id, lease.epoch) == (partition, AGENT, 1)
    assert lease.expires_at_ms > TTL_MS


async def test_a_live_lease_of_another_agent_is_left_alone(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    assert await metadata.acquire_leases(OTHER, [partition], TTL_MS) == [None]
    (renewed,) = await metadata.renew_leases(AGENT, [lease], TTL_MS)
    assert renewed is not None
    assert renewed.epoch == 1


async def test_an_expired_lease_goes_to_whoever_asks_at_the_next_epoch(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    await acquire(metadata, partition)
    await metadata_kind.pass_time(TTL_MS - 5_000)
    assert await metadata.acquire_leases(OTHER, [partition], TTL_MS) == [None]
    await metadata_kind.pass_time(5_000)
    taken = await acquire(metadata, partition, OTHER)
    assert (taken.agent_id, taken.epoch) == (OTHER, 2)
    assert await metadata.acquire_leases(AGENT, [partition], TTL_MS) == [None]


async def test_an_agent_that_takes_its_own_lease_again_leads_at_a_new_epoch(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    first = await acquire(metadata, partition)
    second = await acquire(metadata, partition)
    assert (first.epoch, second.epoch) == (1, 2)
    assert await metadata.renew_leases(AGENT, [first], TTL_MS) == [None]


async def test_a_renewal_extends_and_keeps_the_epoch(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    (partition,) = await make_topic(metadata)
    lease: Lease | None = await acquire(metadata, partition)
    for _ in range(3):
        await metadata_kind.pass_time(TTL_MS - 5_000)
        assert lease is not None
        (lease,) = await metadata.renew_leases(AGENT, [lease], TTL_MS)
        assert lease is not None
        assert lease.epoch == 1
    assert await metadata.acquire_leases(OTHER, [partition], TTL_MS) == [None]


async def test_a_lease_that_is_expired_released_taken_or_unknown_is_not_renewed(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    expired, released, taken, live = await make_topic(metadata, 4)
    leases = {partition: await acquire(metadata, partition) for partition in (expired, taken)}
    await metadata_kind.pass_time(TTL_MS)
    await acquire(metadata, taken, OTHER)
    for partition in (released, live):
        leases[partition] = await acquire(metadata, partition)
    await metadata.release_leases(AGENT, [leases[released]], drained=True)
    unknown = Lease(partition=TopicPartition(uuid4(), 0), agent_id=AGENT, epoch=1, expires_at_ms=0)
    asked = [leases[expired], leases[released], leases[taken], unknown, leases[live]]
    *refused, renewed = await metadata.renew_leases(AGENT, asked, TTL_MS)
    assert refused == [None] * 4
    assert renewed is not None
    assert await metadata.renew_leases(OTHER, [leases[live]], TTL_MS) == [None]


async def test_a_released_lease_is_free_at_once_and_keeps_its_epoch(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    for epoch in range(1, 5):
        lease = await acquire(metadata, partition, AGENT if epoch % 2 else OTHER)
        assert lease.epoch == epoch
        await metadata.release_leases(lease.agent_id, [lease], drained=True)
    assert await metadata_kind.query("SELECT topic, partition_id, epoch FROM partition_leases") == [("orders", 0, 4)]


async def test_the_leases_of_others_are_not_released(metadata: MetadataStore) -> None:
    mine, other = await make_topic(metadata, 2)
    old = await acquire(metadata, mine)
    current = await acquire(metadata, mine)
    foreign = await acquire(metadata, other, OTHER)
    await metadata.release_leases(AGENT, [old, foreign], drained=True)
    assert await metadata.acquire_leases("agent-3", [mine, other], TTL_MS) == [None, None]
    assert None not in await metadata.renew_leases(AGENT, [current], TTL_MS)


async def test_answers_are_in_the_order_asked(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 5)
    await acquire(metadata, partitions[1], OTHER)
    gone = TopicPartition(uuid4(), 0)
    beyond = TopicPartition(partitions[0].topic_id, 5)
    asked = [partitions[4], gone, partitions[1], partitions[0], beyond, partitions[4]]
    answers = await metadata.acquire_leases(AGENT, asked, TTL_MS)
    assert [lease and (lease.partition, lease.epoch) for lease in answers] == [
        (partitions[4], 1),
        None,
        None,
        (partitions[0], 1),
        None,
        (partitions[4], 1),
    ]


async def test_of_two_agents_that_ask_at_once_exactly_one_gets_each_lease(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    partitions = await make_topic(metadata, 20)
    ours, theirs = await asyncio.gather(
        metadata.acquire_leases(AGENT, partitions, TTL_MS),
        other_process.acquire_leases(OTHER, list(reversed(partitions)), TTL_MS),
    )
    for lease, rival in zip(ours, reversed(theirs), strict=True):
        assert (lease is None) != (rival is None)


async def test_of_many_takeovers_of_an_expired_lease_exactly_one_succeeds(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    for round_number in range(1, 6):
        answers = await asyncio.gather(
            *(
                store.acquire_leases(f"agent-{name}-{number}", [partition], TTL_MS)
                for number in range(6)
                for name, store in (("a", metadata), ("b", other_process))
            )
        )
        winners = [lease for (lease,) in answers if lease is not None]
        assert [lease.epoch for lease in winners] == [round_number]
        await metadata_kind.pass_time(TTL_MS)


async def test_a_thousand_leases_are_taken_renewed_and_released_in_one_call_each(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 1000)
    leases = [lease for lease in await metadata.acquire_leases(AGENT, partitions, TTL_MS) if lease is not None]
    assert [lease.partition for lease in leases] == partitions
    renewed = await metadata.renew_leases(AGENT, leases, TTL_MS)
    assert [lease and lease.partition for lease in renewed] == partitions
    await metadata.release_leases(AGENT, leases, drained=True)
    taken = await metadata.acquire_leases(OTHER, partitions, TTL_MS)
    assert {lease and lease.epoch for lease in taken} == {2}


async def test_nothing_asked_is_nothing_answered(metadata: MetadataStore) -> None:
    assert await metadata.acquire_leases(AGENT, [], TTL_MS) == []
    assert await metadata.renew_leases(AGENT, [], TTL_MS) == []
    await metadata.release_leases(AGENT, [], drained=True)


async def test_a_lease_lasts_longer_than_nothing(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    with pytest.raises(InvalidInput):
        await metadata.acquire_leases(AGENT, [partition], 0)
