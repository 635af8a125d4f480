"""What every metadata store does with agents, line by line of the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from behaviour.cluster import agent
from behaviour.coordinators import acquire_shard, pass_time
from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, MetadataStoreKind, acquire, make_topic
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import AlreadyExists, InvalidInput, NotFound
from streamhouse.model.names import TopicPartition


async def test_a_registered_agent_is_listed_with_all_it_says_of_itself(metadata: MetadataStore) -> None:
    row = await metadata.register_agent(agent(zone="zone-b", group="batch"), 0)
    assert row.info == agent(zone="zone-b", group="batch")
    assert (row.node_id, row.silent_ms, row.is_draining) == (1, 0, False)
    assert row.started_at_ms > 0
    (listed,) = await metadata.list_agents()
    assert replace(listed, silent_ms=0) == row
    assert listed.silent_ms < 60_000


async def test_the_row_of_an_agent_has_the_columns_that_operators_know(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    row = await metadata.register_agent(agent(zone="zone-b", group="batch"), 0)
    ((*said, last_heartbeat),) = await metadata_kind.query(
        "SELECT agent_id, address, availability_zone, agent_group, started_at, last_heartbeat FROM agents"
    )
    assert said == [AGENT, "agent-1:9094", "zone-b", "batch", row.started_at_ms]
    assert abs(last_heartbeat - row.started_at_ms) < TTL_MS  # PostgreSQL's clock is read for each


async def test_agents_are_listed_by_id(metadata: MetadataStore) -> None:
    assert await metadata.list_agents() == []
    for agent_id in ("b", "a", "C", "a-b", "a.b"):
        await metadata.register_agent(agent(agent_id), 0)
    assert [row.info.agent_id for row in await metadata.list_agents()] == ["C", "a", "a-b", "a.b", "b"]


async def test_an_agent_is_silent_for_as_long_as_it_does_not_beat(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    await metadata.register_agent(agent(), 0)
    await metadata.register_agent(agent(OTHER), 0)
    await metadata_kind.pass_time(90_000)
    assert await metadata.heartbeat_agent(OTHER)
    dead, alive = await metadata.list_agents()
    assert 90_000 <= dead.silent_ms < 150_000
    assert alive.silent_ms < 60_000


async def test_a_heartbeat_changes_nothing_else(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    await metadata.register_agent(agent(), 0)
    await metadata.drain_agent(AGENT)
    (before,) = await metadata.list_agents()
    assert await metadata.heartbeat_agent(AGENT)
    (after,) = await metadata.list_agents()
    assert replace(after, silent_ms=0) == replace(before, silent_ms=0)


async def test_a_heartbeat_of_one_that_is_not_registered_says_so(metadata: MetadataStore) -> None:
    assert not await metadata.heartbeat_agent(AGENT)
    await metadata.register_agent(agent(), 0)
    await metadata.deregister_agent(AGENT)
    assert not await metadata.heartbeat_agent(AGENT)
    assert await metadata.list_agents() == []


async def test_an_agent_that_registers_again_replaces_what_it_said(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    first = await metadata.register_agent(agent(), 0)
    await metadata.drain_agent(AGENT)
    await metadata_kind.pass_time(90_000)
    moved = replace(agent(zone="zone-c", group="batch"), address="elsewhere:1", kafka_address="elsewhere:2")
    second = await metadata.register_agent(moved, 0)
    assert second.info == moved
    assert (second.node_id, second.is_draining) == (first.node_id, False)
    (listed,) = await metadata.list_agents()
    assert replace(listed, silent_ms=0) == second
    assert listed.silent_ms < 60_000


async def test_a_draining_agent_says_so_until_it_registers_again(metadata: MetadataStore) -> None:
    await metadata.register_agent(agent(), 0)
    await metadata.register_agent(agent(OTHER), 0)
    for _ in range(2):
        await metadata.drain_agent(AGENT)
        assert [row.is_draining for row in await metadata.list_agents()] == [True, False]
    row = (await metadata.list_agents())[0]
    assert (row.info, row.node_id) == (agent(), 1)
    await metadata.register_agent(agent(), 0)
    assert [row.is_draining for row in await metadata.list_agents()] == [False, False]


async def test_one_that_is_not_registered_cannot_be_drained(metadata: MetadataStore) -> None:
    with pytest.raises(NotFound):
        await metadata.drain_agent(AGENT)


async def test_deregistering_takes_only_that_agent_and_may_be_repeated(metadata: MetadataStore) -> None:
    await metadata.register_agent(agent(), 0)
    await metadata.register_agent(agent(OTHER), 0)
    for _ in range(2):
        await metadata.deregister_agent(AGENT)
    assert [row.info.agent_id for row in await metadata.list_agents()] == [OTHER]


async def test_node_ids_are_given_out_from_one_and_stay_their_agents_own(metadata: MetadataStore) -> None:
    given = [(await metadata.register_agent(agent(f"agent-{number}"), 0)).node_id for number in range(4)]
    assert given == [1, 2, 3, 4]
    await metadata.deregister_agent("agent-1")
    await metadata.deregister_agent("agent-3")
    assert (await metadata.register_agent(agent("agent-new"), 0)).node_id == 5
    assert (await metadata.register_agent(agent("agent-3"), 0)).node_id == 4
    assert (await metadata.register_agent(agent("agent-1"), 0)).node_id == 2


async def test_a_node_id_that_is_asked_for_is_given_unless_another_agent_has_it(metadata: MetadataStore) -> None:
    assert (await metadata.register_agent(agent(), 7)).node_id == 7
    assert (await metadata.register_agent(agent(), 7)).node_id == 7
    assert (await metadata.register_agent(agent(), 0)).node_id == 7
    with pytest.raises(AlreadyExists):
        await metadata.register_agent(agent(OTHER), 7)
    assert [row.info.agent_id for row in await metadata.list_agents()] == [AGENT]
    await metadata.deregister_agent(AGENT)
    with pytest.raises(AlreadyExists):
        await metadata.register_agent(agent(OTHER), 7)


async def test_an_id_that_an_agent_once_had_is_never_given_to_another_that_asks_for_any(
    metadata: MetadataStore,
) -> None:
    await metadata.register_agent(agent(), 7)
    assert (await metadata.register_agent(agent(), 3)).node_id == 3
    assert (await metadata.register_agent(agent(), 0)).node_id == 3
    assert (await metadata.register_agent(agent(OTHER), 0)).node_id == 8


async def test_when_the_last_node_id_is_taken_others_can_still_ask_for_theirs(metadata: MetadataStore) -> None:
    await metadata.register_agent(agent(), 2**31 - 1)
    with pytest.raises(InvalidInput):
        await metadata.register_agent(agent(OTHER), 0)
    assert (await metadata.register_agent(agent(OTHER), 5)).node_id == 5


async def test_agents_that_register_at_once_get_different_node_ids(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    rows = await asyncio.gather(
        *(
            store.register_agent(agent(f"agent-{name}-{number}"), 0)
            for number in range(6)
            for name, store in (("a", metadata), ("b", other_process))
        )
    )
    assert sorted(row.node_id for row in rows) == list(range(1, 13))
    listed = {row.info.agent_id: row.node_id for row in await metadata.list_agents()}
    assert listed == {row.info.agent_id: row.node_id for row in rows}


async def test_of_many_that_ask_for_one_node_id_exactly_one_gets_it(
    metadata: MetadataStore, other_process: MetadataStore
) -> None:
    outcomes = await asyncio.gather(
        *(
            store.register_agent(agent(f"agent-{name}-{number}"), 9)
            for number in range(4)
            for name, store in (("a", metadata), ("b", other_process))
        ),
        return_exceptions=True,
    )
    assert sorted(isinstance(outcome, AlreadyExists) for outcome in outcomes) == [False] + [True] * 7
    assert len(await metadata.list_agents()) == 1


@pytest.mark.parametrize("metadata_text", ["{}", "[]", "null", '{"node_id": "x", "kafka_address": 5, "draining": 1}'])
async def test_an_agent_that_somebody_inserted_by_hand_is_listed_all_the_same(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, metadata_text: str
) -> None:
    await metadata_kind.query(
        "INSERT INTO agents (agent_id, address, availability_zone, agent_group, last_heartbeat, started_at, metadata)"
        f" VALUES ('by-hand', '127.0.0.1:9090', 'local', 'test', 1, 2, '{metadata_text}')"
    )
    (row,) = await metadata.list_agents()
    assert (row.info.agent_id, row.info.kafka_address, row.node_id, row.is_draining) == ("by-hand", "", 0, False)
    assert row.silent_ms > 60_000
    assert await metadata.heartbeat_agent("by-hand")
    await metadata.drain_agent("by-hand")
    (row,) = await metadata.list_agents()
    assert row.is_draining


async def test_what_cannot_be_an_agent_is_refused(metadata: MetadataStore) -> None:
    for wrong in (
        agent(""),
        agent("a\0b"),
        agent(zone="\ud800"),
        agent(group="\0"),
        replace(agent(), address="\0"),
        replace(agent(), kafka_address="\0"),
    ):
        with pytest.raises(InvalidInput):
            await metadata.register_agent(wrong, 0)
    for node_id in (-1, 2**31):
        with pytest.raises(InvalidInput):
            await metadata.register_agent(agent(), node_id)
    assert await metadata.list_agents() == []


# --- found dead ---


async def found_dead(store: MetadataStore) -> list[str]:
    return [row.info.agent_id for row in await store.list_agents() if row.is_found_dead]


async def two_agents(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> TopicPartition:
    """Of which the first leads this partition and coordinates shard 3, and lets both run out in silence."""
    (partition,) = await make_topic(metadata)
    await metadata.register_agent(agent(), 0)
    await metadata.register_agent(agent(OTHER), 0)
    await acquire(metadata, partition)
    await acquire_shard(metadata, 3)
    await pass_time(metadata_kind, TTL_MS)
    return partition


@pytest.mark.parametrize("what", ["partition", "shard"])
async def test_whose_lease_ran_out_in_silence_and_is_taken_over_is_found_dead_until_its_next_heartbeat(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind, what: str
) -> None:
    partition = await two_agents(metadata, metadata_kind)
    assert await found_dead(metadata) == []
    if what == "partition":
        await acquire(metadata, partition, OTHER)
    else:
        await acquire_shard(metadata, 3, OTHER)
    assert await found_dead(metadata) == [AGENT]
    await pass_time(metadata_kind, 5_000)
    await metadata.heartbeat_agent(OTHER)
    assert await found_dead(metadata) == [AGENT]
    await metadata.heartbeat_agent(AGENT)
    assert await found_dead(metadata) == []


async def test_who_registers_again_is_not_dead(metadata: MetadataStore, metadata_kind: MetadataStoreKind) -> None:
    partition = await two_agents(metadata, metadata_kind)
    await acquire(metadata, partition, OTHER)
    await pass_time(metadata_kind, 5_000)
    await metadata.register_agent(agent(), 0)
    assert await found_dead(metadata) == []


async def test_who_was_heard_of_after_its_lease_ran_out_is_not_found_dead(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partition = await two_agents(metadata, metadata_kind)
    await pass_time(metadata_kind, 1_000)
    await metadata.heartbeat_agent(AGENT)
    await acquire(metadata, partition, OTHER)
    await acquire_shard(metadata, 3, OTHER)
    assert await found_dead(metadata) == []


async def test_who_releases_takes_its_own_again_or_keeps_its_lease_is_not_found_dead(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    partition = await two_agents(metadata, metadata_kind)
    own = await acquire(metadata, partition)
    shard = await acquire_shard(metadata, 3)
    assert await metadata.acquire_leases(OTHER, [partition], TTL_MS) == [None]
    assert await metadata.acquire_shards(OTHER, [3], TTL_MS) == [None]
    await metadata.release_leases(AGENT, [own], drained=True)
    await metadata.release_shards(AGENT, [shard])
    await acquire(metadata, partition, OTHER)
    await acquire_shard(metadata, 3, OTHER)
    assert await found_dead(metadata) == []


async def test_of_many_that_take_over_at_once_none_is_in_the_others_way(
    metadata: MetadataStore, metadata_kind: MetadataStoreKind
) -> None:
    """The rows of those found dead are locked too."""
    partitions = await make_topic(metadata, 12)
    holders = [f"dead-{number}" for number in range(4)]
    for number, partition in enumerate(partitions):
        await metadata.register_agent(agent(holders[number % 4]), 0)
        await acquire(metadata, partition, holders[number % 4])
        await acquire_shard(metadata, number, holders[-number % 4])
    await pass_time(metadata_kind, TTL_MS)
    asked = [partitions, partitions[::-1]] * 3
    granted = await asyncio.gather(
        *(metadata.acquire_leases(f"taker-{number}", some, TTL_MS) for number, some in enumerate(asked)),
        *(metadata.heartbeat_agent(holder) for holder in holders),
        *(metadata.deregister_agent(holder) for holder in holders[:2]),
        *(metadata.acquire_shards(f"taker-{number}", range(12), TTL_MS) for number in range(3)),
    )
    taken = [lease.partition for leases in granted[: len(asked)] for lease in leases if lease is not None]
    assert sorted(taken) == sorted(partitions)


# --- the way to the object store ---


async def test_what_an_agent_says_of_its_way_to_the_store_stays_until_it_registers_again(
    metadata: MetadataStore,
) -> None:
    await metadata.register_agent(agent(), 0)
    for access in (StoreAccess.STALLED, StoreAccess.RECOVERING, StoreAccess.PROVEN, StoreAccess.USUAL):
        await metadata.say_store_access(AGENT, access)
        await metadata.heartbeat_agent(AGENT)
        (row,) = await metadata.list_agents()
        assert row.store_access is access
    await metadata.say_store_access(AGENT, StoreAccess.STALLED)
    await metadata.register_agent(agent(), 0)
    (row,) = await metadata.list_agents()
    assert row.store_access is StoreAccess.USUAL


async def test_what_an_agent_says_of_the_store_changes_nothing_else(metadata: MetadataStore) -> None:
    await metadata.register_agent(agent(), 0)
    await metadata.register_agent(agent(OTHER), 0)
    await metadata.drain_agent(AGENT)
    before = await metadata.list_agents()
    await metadata.say_store_access(AGENT, StoreAccess.STALLED)
    after = await metadata.list_agents()
    assert [replace(row, silent_ms=0) for row in after] == [
        replace(row, silent_ms=0, store_access=StoreAccess.STALLED if row.info.agent_id == AGENT else row.store_access)
        for row in before
    ]


async def test_nobody_speaks_of_the_store_who_is_not_registered(metadata: MetadataStore) -> None:
    with pytest.raises(NotFound):
        await metadata.say_store_access(AGENT, StoreAccess.STALLED)


# --- the durability of topics that say none ---


async def test_an_agent_is_listed_with_the_durability_that_it_said_last(metadata: MetadataStore) -> None:
    await metadata.register_agent(replace(agent(), durability="object"), 0)
    await metadata.register_agent(agent(OTHER), 0)
    await metadata.say_store_access(AGENT, StoreAccess.PROVEN)
    assert {row.info.agent_id: row.info.durability for row in await metadata.list_agents()} == {
        AGENT: "object",
        OTHER: "",
    }
    await metadata.say_durability(AGENT, "wal")
    row = next(row for row in await metadata.list_agents() if row.info.agent_id == AGENT)
    assert (row.info.durability, row.store_access) == ("wal", StoreAccess.PROVEN)
    await metadata.register_agent(replace(agent(), durability="object"), 0)
    row = next(row for row in await metadata.list_agents() if row.info.agent_id == AGENT)
    assert row.info.durability == "object"


async def test_a_durability_that_there_is_not_is_refused_and_nobody_speaks_who_is_not_registered(
    metadata: MetadataStore,
) -> None:
    with pytest.raises(NotFound):
        await metadata.say_durability(AGENT, "wal")
    with pytest.raises(InvalidInput):
        await metadata.say_durability(AGENT, "none")
    with pytest.raises(InvalidInput):
        await metadata.register_agent(replace(agent(), durability="none"), 0)
