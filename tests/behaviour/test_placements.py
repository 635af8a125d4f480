"""What every metadata store says of where partitions are, and who may lead them, line by line of the protocol."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from behaviour.cluster import acquire_with_local_wal, placement_of, wal_commit
from behaviour.coordinators import acquire_shard, pass_time, rival, until_waiting
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
from streamhouse.core.placement.assignment import Candidate
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.metadata.cluster import OwnerDecision, Placement, ShardPlacement
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.model.errors import Fenced, InvalidInput, NotFound
from streamhouse.model.names import TopicPartition


async def test_a_new_partition_is_nobodys(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    assert await metadata.list_placements() == [
        Placement(
            topic="orders",
            partition=partition,
            agent_id="",
            epoch=0,
            lease_left_ms=0,
            wal_agent_id="",
            pinned_to="",
            log_start_offset=0,
            committed_end=0,
            durable_end=0,
        )
    ]


async def test_every_partition_is_listed_by_topic_and_number(metadata: MetadataStore) -> None:
    assert await metadata.list_placements() == []
    for name in ("b", "a", "C"):
        await make_topic(metadata, 12, name=name)
    assert [(placement.topic, placement.partition.partition) for placement in await metadata.list_placements()] == [
        (name, number) for name in ("C", "a", "b") for number in range(12)
    ]


async def test_a_placement_says_who_leads_and_for_how_long(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    led, lost, released = await make_topic(metadata, 3)
    await acquire(metadata, lost)
    await metadata_kind.pass_time(TTL_MS)
    await metadata_kind.pass_time(7_000)
    lease = await acquire(metadata, released, OTHER)
    await metadata.release_leases(OTHER, [lease], drained=True)
    await acquire(metadata, led)
    by_number = await metadata.list_placements()
    assert [(row.agent_id, row.epoch) for row in by_number] == [(AGENT, 1), (AGENT, 1), (OTHER, 1)]
    assert 0 < by_number[0].lease_left_ms <= TTL_MS
    # How long ago it ran out, but not for one that was given back.
    assert -60_000 < by_number[1].lease_left_ms <= -7_000
    assert by_number[2].lease_left_ms < -(10**12)


async def test_a_placement_says_what_is_committed_and_what_is_durable(metadata: MetadataStore) -> None:
    in_segments, in_wal, in_both = await make_topic(metadata, 3)
    leases = [await acquire(metadata, partition) for partition in (in_segments, in_wal, in_both)]
    await metadata.commit_segments([segment_commit(leases[0], 0, 10)])
    await metadata.commit_wal_objects([wal_commit((leases[1], 0, 5), (leases[2], 0, 20))])
    await metadata.commit_segments([segment_commit(leases[2], 0, 15)])
    await metadata.advance_log_start(in_segments, AGENT, leases[0].epoch, 4)
    assert [(row.log_start_offset, row.committed_end, row.durable_end) for row in await metadata.list_placements()] == [
        (4, 10, 10),
        (0, 0, 5),
        (0, 15, 20),
    ]
    assert [row.durable_end for row in await metadata.load_partitions([in_segments, in_wal, in_both])] == [10, 5, 20]


async def test_a_lease_of_a_topic_that_was_made_again_is_not_shown(metadata: MetadataStore) -> None:
    (old,) = await make_topic(metadata)
    await acquire_with_local_wal(metadata, old)
    await metadata.pin_partition(old, OTHER)
    await metadata.delete_topic(old.topic_id)
    assert await metadata.list_placements() == []
    (new,) = await make_topic(metadata)
    placement = await placement_of(metadata, new)
    assert (placement.agent_id, placement.epoch, placement.wal_agent_id, placement.pinned_to) == ("", 0, "", "")


async def test_shards_are_listed_with_their_coordinators(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    assert await metadata.list_shard_placements() == [
        ShardPlacement(shard=shard, agent_id="", epoch=0, lease_left_ms=0) for shard in range(SHARD_COUNT)
    ]
    await acquire_shard(metadata, 1)
    await pass_time(metadata_kind, TTL_MS + 7_000)
    await acquire_shard(metadata, 3, OTHER)
    await acquire_shard(metadata, 3, OTHER)
    released = await acquire_shard(metadata, 4)
    await metadata.release_shards(AGENT, [released])
    shards = await metadata.list_shard_placements()
    assert [(shards[n].agent_id, shards[n].epoch) for n in (0, 1, 3, 4)] == [
        ("", 0),
        (AGENT, 1),
        (OTHER, 2),
        (AGENT, 1),
    ]
    assert -60_000 < shards[1].lease_left_ms <= -7_000
    assert 0 < shards[3].lease_left_ms <= TTL_MS
    assert shards[4].lease_left_ms < 0


async def test_a_shard_that_somebody_made_by_hand_is_nobodys_to_lead(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    for shard in (-1, SHARD_COUNT):
        await metadata_kind.query(
            "INSERT INTO coordinator_leases (shard, leader_agent_id, lease_expires_at, acquired_at, epoch)"
            f" VALUES ({shard}, '', 0, 0, 0)"
        )
    assert [row.shard for row in await metadata.list_shard_placements()] == list(range(SHARD_COUNT))


async def test_a_pin_is_shown_until_it_is_taken_away(metadata: MetadataStore) -> None:
    pinned, free = await make_topic(metadata, 2)
    await metadata.pin_partition(pinned, AGENT)
    await metadata.pin_partition(pinned, OTHER)
    assert [row.pinned_to for row in await metadata.list_placements()] == [OTHER, ""]
    await metadata.pin_partition(pinned, "")
    assert (await placement_of(metadata, pinned)).pinned_to == ""
    assert (await placement_of(metadata, free)).pinned_to == ""


# --- owners ---


def candidate(agent_id: str) -> Candidate:
    return Candidate(agent_id=agent_id, zone="eu-1a", agent_group="default")


async def owners(metadata: MetadataStore) -> list[str]:
    return [placement.owner for placement in await metadata.list_placements()]


async def formers(metadata: MetadataStore) -> list[str]:
    return [placement.former_owner for placement in await metadata.list_placements()]


async def test_before_anybody_has_decided_nobody_owns_anything(metadata: MetadataStore) -> None:
    await make_topic(metadata, 2)
    assert await metadata.load_owner_decision() == OwnerDecision(version=0, agents=frozenset())
    assert await owners(metadata) == ["", ""]


async def test_owners_are_shown_with_the_agents_among_whom_they_were_chosen(metadata: MetadataStore) -> None:
    first, _, third = await make_topic(metadata, 3)
    agents = {candidate(AGENT), candidate(OTHER), Candidate(agent_id='o"k', zone="", agent_group="b,c")}
    assert await metadata.decide_owners(0, agents, {first: AGENT, third: OTHER})
    assert await metadata.load_owner_decision() == OwnerDecision(version=1, agents=frozenset(agents))
    assert await owners(metadata) == [AGENT, "", OTHER]
    assert await metadata.decide_owners(1, {candidate(OTHER)}, {first: OTHER})
    assert await metadata.load_owner_decision() == OwnerDecision(version=2, agents=frozenset({candidate(OTHER)}))
    assert await owners(metadata) == [OTHER, "", OTHER]


async def test_a_former_owner_is_remembered_until_it_has_the_partition_again(metadata: MetadataStore) -> None:
    """And also then, if the one that had it meanwhile is gone: that one may come back."""
    stays, goes = await make_topic(metadata, 2)
    both, one = {candidate(AGENT), candidate(OTHER)}, {candidate(AGENT)}
    assert await metadata.decide_owners(0, both, {stays: AGENT, goes: AGENT})
    assert await formers(metadata) == ["", ""]
    assert await metadata.decide_owners(1, both, {stays: OTHER, goes: OTHER})
    assert await formers(metadata) == [AGENT, AGENT]
    assert await metadata.decide_owners(2, both, {stays: AGENT})
    assert await metadata.decide_owners(3, one, {goes: AGENT})
    assert await formers(metadata) == ["", OTHER]


async def test_who_decides_after_another_has_changes_nothing(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    assert await metadata.decide_owners(0, {candidate(AGENT)}, {partition: AGENT})
    for version in (0, 2):
        assert not await metadata.decide_owners(version, {candidate(OTHER)}, {partition: OTHER})
    assert await metadata.load_owner_decision() == OwnerDecision(version=1, agents=frozenset({candidate(AGENT)}))
    assert await owners(metadata) == [AGENT]


async def test_of_those_who_decide_at_once_one_does(metadata: MetadataStore) -> None:
    partitions = await make_topic(metadata, 20)
    deciders = [f"agent-{number}" for number in range(5)]
    decided = await asyncio.gather(
        *(metadata.decide_owners(0, {candidate(me)}, dict.fromkeys(partitions, me)) for me in deciders)
    )
    assert sorted(decided) == [False, False, False, False, True]
    assert await owners(metadata) == [deciders[decided.index(True)]] * 20


async def test_a_partition_that_is_gone_gets_no_owner_and_the_others_theirs(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    gone = TopicPartition(uuid4(), 0)
    assert await metadata.decide_owners(0, {candidate(AGENT)}, {gone: AGENT, partition: AGENT})
    assert await owners(metadata) == [AGENT]
    await metadata.delete_topic(partition.topic_id)
    await make_topic(metadata)
    assert await owners(metadata) == [""]


async def test_an_owner_that_cannot_be_stored_is_refused(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    with pytest.raises(InvalidInput):
        await metadata.decide_owners(0, {candidate(AGENT)}, {partition: "a\0b"})
    with pytest.raises(InvalidInput):
        await metadata.decide_owners(0, {candidate("a\0b")}, {})


async def test_a_partition_that_is_gone_is_neither_pinned_nor_elected(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    for gone in (TopicPartition(uuid4(), 0), TopicPartition(partition.topic_id, 1)):
        with pytest.raises(NotFound):
            await metadata.pin_partition(gone, AGENT)
        with pytest.raises(NotFound):
            await metadata.elect_unclean(gone)
    with pytest.raises(InvalidInput):
        await metadata.pin_partition(partition, "a\0b")


async def test_a_leader_that_writes_to_its_own_disk_is_the_only_one_that_may_lead_again(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    await acquire_with_local_wal(metadata, partition)
    assert (await placement_of(metadata, partition)).wal_agent_id == AGENT
    await metadata_kind.pass_time(TTL_MS)
    assert await metadata.acquire_leases(OTHER, [partition], TTL_MS) == [None]
    again = await acquire(metadata, partition)
    assert again.epoch == 2
    # It has not begun to write yet, and what it wrote before is on its disk.
    assert (await placement_of(metadata, partition)).wal_agent_id == AGENT


async def test_what_is_refused_for_another_agents_disk_leaves_the_rest_of_the_call_alone(
    metadata: MetadataStore,
) -> None:
    kept, free = await make_topic(metadata, 2)
    lease = await acquire_with_local_wal(metadata, kept)
    await metadata.release_leases(AGENT, [lease], drained=False)
    first, second = await metadata.acquire_leases(OTHER, [kept, free], TTL_MS)
    assert first is None
    assert second is not None
    assert (await placement_of(metadata, kept)).epoch == lease.epoch


async def test_a_leader_that_writes_to_wal_objects_keeps_nobody_out(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    await metadata.begin_epochs(AGENT, [epoch_start(lease, 0, in_local_wal=False)])
    assert (await placement_of(metadata, partition)).wal_agent_id == ""
    await metadata_kind.pass_time(TTL_MS)
    assert (await acquire(metadata, partition, OTHER)).epoch == 2


async def test_a_leader_that_goes_on_in_wal_objects_needs_its_disk_no_longer(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    await acquire_with_local_wal(metadata, partition)
    lease = await acquire(metadata, partition)
    await metadata.begin_epochs(AGENT, [epoch_start(lease, 0, in_local_wal=False)])
    assert (await placement_of(metadata, partition)).wal_agent_id == ""


async def test_an_epoch_that_is_not_the_agents_does_not_claim_its_disk(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    old, expired, foreign = await make_topic(metadata, 3)
    leases = [await acquire(metadata, partition) for partition in (old, expired)]
    await metadata_kind.pass_time(TTL_MS)
    await acquire(metadata, old)
    leases.append(await acquire(metadata, foreign, OTHER))
    await metadata.begin_epochs(AGENT, [epoch_start(lease, 0, in_local_wal=True) for lease in leases])
    assert [row.wal_agent_id for row in await metadata.list_placements()] == ["", "", ""]


async def test_beginning_an_epoch_again_changes_nothing(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire_with_local_wal(metadata, partition)
    everything = "SELECT wal_agent_id, pinned_to, wal_end, high_watermark FROM partitions"
    before = await metadata_kind.query(everything)
    await metadata.begin_epochs(AGENT, [epoch_start(lease, 0, in_local_wal=True)] * 2)
    assert await metadata_kind.query(everything) == before


async def test_a_drained_release_lets_anybody_lead(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire_with_local_wal(metadata, partition)
    await metadata.release_leases(AGENT, [lease], drained=True)
    assert (await placement_of(metadata, partition)).wal_agent_id == ""
    assert (await acquire(metadata, partition, OTHER)).epoch == 2


async def test_a_release_that_is_not_drained_keeps_the_partition_for_its_agent(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire_with_local_wal(metadata, partition)
    await metadata.release_leases(AGENT, [lease], drained=False)
    assert await metadata.acquire_leases(OTHER, [partition], TTL_MS) == [None]
    assert (await acquire(metadata, partition)).epoch == 2


async def test_a_drained_release_of_a_lease_that_ran_out_still_counts(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire_with_local_wal(metadata, partition)
    await metadata_kind.pass_time(TTL_MS)
    await metadata.release_leases(AGENT, [lease], drained=True)
    assert (await placement_of(metadata, partition)).wal_agent_id == ""


async def test_a_late_drained_release_of_a_former_process_says_nothing_of_what_is_on_the_disk_now(
    metadata: MetadataStore,
) -> None:
    (partition,) = await make_topic(metadata)
    before_restart = await acquire_with_local_wal(metadata, partition)
    await acquire_with_local_wal(metadata, partition)
    await metadata.release_leases(AGENT, [before_restart], drained=True)
    foreign = Lease(partition=partition, agent_id=OTHER, epoch=2, expires_at_ms=0)
    await metadata.release_leases(OTHER, [foreign], drained=True)
    placement = await placement_of(metadata, partition)
    assert (placement.wal_agent_id, placement.epoch) == (AGENT, 2)
    assert placement.lease_left_ms > 0


async def test_an_unclean_election_gives_up_the_dead_agents_disk(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    await acquire_with_local_wal(metadata, partition)
    with pytest.raises(Fenced):
        await metadata.elect_unclean(partition)
    assert (await placement_of(metadata, partition)).wal_agent_id == AGENT
    await metadata_kind.pass_time(TTL_MS)
    assert await metadata.elect_unclean(partition) == AGENT
    assert await metadata.elect_unclean(partition) == ""
    assert (await acquire(metadata, partition, OTHER)).epoch == 2


async def test_after_an_unclean_election_no_clock_brings_the_old_lease_to_life(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire_with_local_wal(metadata, partition)
    await metadata_kind.pass_time(TTL_MS)
    await metadata.elect_unclean(partition)
    await metadata_kind.pass_time(-TTL_MS)
    assert await metadata.renew_leases(AGENT, [lease], TTL_MS) == [None]


async def test_an_unclean_election_of_what_nobody_ever_led_gives_up_nothing(metadata: MetadataStore) -> None:
    (partition,) = await make_topic(metadata)
    assert await metadata.elect_unclean(partition) == ""
    await acquire(metadata, partition)
    with pytest.raises(Fenced):
        await metadata.elect_unclean(partition)


async def test_a_takeover_waits_for_a_leader_that_is_just_noting_its_disk(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    """Its lease runs out while that transaction is open: who takes over must not miss what it says."""
    (partition,) = await make_topic(metadata)
    await acquire(metadata, partition)
    async with rival(metadata_kind, f"UPDATE partitions SET wal_agent_id = '{AGENT}'"):
        if isinstance(metadata_kind, PostgresKind):
            await metadata_kind.query("UPDATE partition_leases SET lease_expires_at = 1")
        else:
            await metadata_kind.pass_time(TTL_MS)
        taking = asyncio.create_task(metadata.acquire_leases(OTHER, [partition], TTL_MS))
        await until_waiting(metadata_kind, taking)
    assert await taking == [None]


async def test_beginning_to_write_waits_for_a_takeover_and_is_then_passed_over(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    lease = await acquire(metadata, partition)
    takeover = f"UPDATE partition_leases SET leader_agent_id = '{OTHER}', epoch = epoch + 1"
    async with rival(metadata_kind, takeover):
        beginning = asyncio.create_task(metadata.begin_epochs(AGENT, [epoch_start(lease, 0, in_local_wal=True)]))
        await until_waiting(metadata_kind, beginning)
    await beginning
    assert (await placement_of(metadata, partition)).wal_agent_id == ""


async def test_an_unclean_election_waits_for_a_renewal_and_is_then_refused(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    (partition,) = await make_topic(metadata)
    await acquire_with_local_wal(metadata, partition)
    await metadata_kind.pass_time(TTL_MS)
    renewal = f"UPDATE partition_leases SET lease_expires_at = lease_expires_at + {2 * TTL_MS}"
    async with rival(metadata_kind, renewal):
        electing = asyncio.create_task(metadata.elect_unclean(partition))
        await until_waiting(metadata_kind, electing)
    with pytest.raises(Fenced):
        await electing
    assert (await placement_of(metadata, partition)).wal_agent_id == AGENT
