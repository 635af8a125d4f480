"""What every metadata store does with the leases of coordinator shards, line by line of the protocol."""

from __future__ import annotations

import asyncio

import pytest

from behaviour.coordinators import acquire_shard, pass_time
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.metadata.groups import ShardLease
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import InvalidInput

ALL = range(SHARD_COUNT)


async def test_every_shard_is_free_at_first_and_granted_at_epoch_one(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    leases = await metadata.acquire_shards(AGENT, ALL, TTL_MS)
    assert [lease and (lease.shard, lease.agent_id, lease.epoch) for lease in leases] == [(n, AGENT, 1) for n in ALL]
    assert all(lease is not None and lease.expires_at_ms > TTL_MS for lease in leases)
    assert await metadata_kind.query("SELECT shard FROM coordinator_leases ORDER BY shard") == [(n,) for n in ALL]


async def test_the_row_says_who_until_when_and_since_when(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease = await acquire_shard(metadata, 3)
    ((*said, acquired_at),) = await metadata_kind.query(
        "SELECT leader_agent_id, lease_expires_at, epoch, acquired_at FROM coordinator_leases WHERE shard = 3"
    )
    assert said == [AGENT, lease.expires_at_ms, 1]
    assert abs(lease.expires_at_ms - acquired_at - TTL_MS) < TTL_MS  # PostgreSQL's clock is read for each


async def test_a_live_lease_of_another_agent_is_left_alone(metadata: MetadataStore) -> None:
    lease = await acquire_shard(metadata, 3)
    assert await metadata.acquire_shards(OTHER, [3], TTL_MS) == [None]
    (renewed,) = await metadata.renew_shards(AGENT, [lease], TTL_MS)
    assert renewed is not None
    assert renewed.epoch == 1


async def test_an_expired_lease_goes_to_whoever_asks_at_the_next_epoch(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    await acquire_shard(metadata, 3)
    await pass_time(metadata_kind, TTL_MS - 5_000)
    assert await metadata.acquire_shards(OTHER, [3], TTL_MS) == [None]
    await pass_time(metadata_kind, 5_000)
    taken = await acquire_shard(metadata, 3, OTHER)
    assert (taken.agent_id, taken.epoch) == (OTHER, 2)
    assert await metadata.acquire_shards(AGENT, [3], TTL_MS) == [None]


async def test_an_agent_that_takes_its_own_lease_again_coordinates_at_a_new_epoch(metadata: MetadataStore) -> None:
    first = await acquire_shard(metadata, 3)
    second = await acquire_shard(metadata, 3)
    assert (first.epoch, second.epoch) == (1, 2)
    assert await metadata.renew_shards(AGENT, [first], TTL_MS) == [None]


async def test_a_renewal_extends_and_keeps_the_epoch(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    lease: ShardLease | None = await acquire_shard(metadata, 3)
    for _ in range(3):
        await pass_time(metadata_kind, TTL_MS - 5_000)
        assert lease is not None
        (lease,) = await metadata.renew_shards(AGENT, [lease], TTL_MS)
        assert lease is not None
        assert lease.epoch == 1
    assert await metadata.acquire_shards(OTHER, [3], TTL_MS) == [None]


async def test_a_lease_that_is_expired_released_or_taken_is_not_renewed(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    expired, released, taken, live = 1, 2, 3, 4
    leases = {shard: await acquire_shard(metadata, shard) for shard in (expired, taken)}
    await pass_time(metadata_kind, TTL_MS)
    await acquire_shard(metadata, taken, OTHER)
    for shard in (released, live):
        leases[shard] = await acquire_shard(metadata, shard)
    await metadata.release_shards(AGENT, [leases[released]])
    asked = [leases[expired], leases[released], leases[taken], leases[live]]
    *refused, renewed = await metadata.renew_shards(AGENT, asked, TTL_MS)
    assert refused == [None] * 3
    assert renewed is not None
    assert renewed.shard == live
    assert await metadata.renew_shards(OTHER, [leases[live]], TTL_MS) == [None]


async def test_a_released_lease_is_free_at_once_and_keeps_its_epoch(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for epoch in range(1, 5):
        lease = await acquire_shard(metadata, 3, AGENT if epoch % 2 else OTHER)
        assert lease.epoch == epoch
        await metadata.release_shards(lease.agent_id, [lease])
    assert await metadata_kind.query("SELECT epoch FROM coordinator_leases WHERE shard = 3") == [(4,)]


async def test_a_clock_that_steps_back_does_not_bring_a_released_lease_to_life(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease = await acquire_shard(metadata, 3)
    await metadata.release_shards(AGENT, [lease])
    await pass_time(metadata_kind, -TTL_MS)
    assert await metadata.renew_shards(AGENT, [lease], TTL_MS) == [None]
    assert (await acquire_shard(metadata, 3, OTHER)).epoch == 2


async def test_the_leases_of_others_are_not_released(metadata: MetadataStore) -> None:
    old = await acquire_shard(metadata, 1)
    current = await acquire_shard(metadata, 1)
    foreign = await acquire_shard(metadata, 2, OTHER)
    await metadata.release_shards(AGENT, [old, foreign])
    assert await metadata.acquire_shards("agent-3", [1, 2], TTL_MS) == [None, None]
    assert None not in await metadata.renew_shards(AGENT, [current], TTL_MS)


async def test_answers_are_in_the_order_asked_and_one_asked_twice_is_granted_once(metadata: MetadataStore) -> None:
    await acquire_shard(metadata, 1, OTHER)
    answers = await metadata.acquire_shards(AGENT, [4, 1, 0, 4], TTL_MS)
    assert [lease and (lease.shard, lease.epoch) for lease in answers] == [(4, 1), None, (0, 1), (4, 1)]


async def test_of_two_agents_that_ask_at_once_exactly_one_gets_each_shard(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    for round_number in range(1, 6):
        ours, theirs = await asyncio.gather(
            metadata.acquire_shards(AGENT, ALL, TTL_MS), other_process.acquire_shards(OTHER, ALL[::-1], TTL_MS)
        )
        for lease, foreign in zip(ours, reversed(theirs), strict=True):
            winner = lease or foreign
            assert (lease is None) != (foreign is None)
            assert winner is not None
            assert winner.epoch == round_number
        await metadata.release_shards(AGENT, [lease for lease in ours if lease is not None])
        await other_process.release_shards(OTHER, [lease for lease in theirs if lease is not None])


async def test_of_many_takeovers_of_an_expired_lease_exactly_one_succeeds(
    metadata: MetadataStore, other_process: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for round_number in range(1, 6):
        answers = await asyncio.gather(
            *(
                store.acquire_shards(f"agent-{name}-{number}", [3], TTL_MS)
                for number in range(6)
                for name, store in (("a", metadata), ("b", other_process))
            )
        )
        assert [lease.epoch for (lease,) in answers if lease is not None] == [round_number]
        await pass_time(metadata_kind, TTL_MS)


async def test_nothing_asked_is_nothing_answered(metadata: MetadataStore) -> None:
    assert await metadata.acquire_shards(AGENT, [], TTL_MS) == []
    assert await metadata.renew_shards(AGENT, [], TTL_MS) == []
    await metadata.release_shards(AGENT, [])


@pytest.mark.parametrize("shard", [-1, SHARD_COUNT, 2**40])
async def test_there_are_no_other_shards(metadata: MetadataStore, shard: int) -> None:
    with pytest.raises(InvalidInput):
        await metadata.acquire_shards(AGENT, [0, shard], TTL_MS)
    assert (await acquire_shard(metadata, 0)).epoch == 1


async def test_a_lease_lasts_longer_than_nothing(metadata: MetadataStore) -> None:
    with pytest.raises(InvalidInput):
        await metadata.acquire_shards(AGENT, [0], 0)
    lease = await acquire_shard(metadata, 0)
    with pytest.raises(InvalidInput):
        await metadata.renew_shards(AGENT, [lease], 0)


# --- asking for a shard ---


async def claims(store: MetadataStore) -> dict[int, str]:
    return {row.shard: row.claimed_by for row in await store.list_shard_placements() if row.claimed_by}


async def test_who_asks_for_a_shard_is_shown_for_as_long_as_that_counts(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    lease = await acquire_shard(metadata, 3)
    await metadata.claim_shards(OTHER, [3, 4], 10_000)
    assert await claims(metadata) == {3: OTHER, 4: OTHER}
    (renewed,) = await metadata.renew_shards(AGENT, [lease], TTL_MS)
    assert renewed is not None
    await pass_time(metadata_kind, 5_000)
    await metadata.claim_shards("third", [4], 10_000)
    assert await claims(metadata) == {3: OTHER, 4: "third"}
    await pass_time(metadata_kind, 5_000)
    assert await claims(metadata) == {4: "third"}


async def test_nobody_asks_for_what_is_its_own_and_a_grant_ends_the_asking(metadata: MetadataStore) -> None:
    lease = await acquire_shard(metadata, 3)
    await metadata.claim_shards(AGENT, [3], 10_000)
    assert await claims(metadata) == {}
    await metadata.claim_shards(OTHER, [3], 10_000)
    await metadata.release_shards(AGENT, [lease])
    assert await claims(metadata) == {3: OTHER}
    taken = await acquire_shard(metadata, 3, OTHER)
    assert taken.epoch == 2
    assert await claims(metadata) == {}


async def test_what_cannot_be_asked_for_is_refused(metadata: MetadataStore) -> None:
    for agent_id, shards, ttl_ms in (("a\0b", [1], 1_000), (AGENT, [SHARD_COUNT], 1_000), (AGENT, [1], 0)):
        with pytest.raises(InvalidInput):
            await metadata.claim_shards(agent_id, shards, ttl_ms)
