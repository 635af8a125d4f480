"""Rounds bring what agents hold in line with what they should hold, whatever comes in between."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from cluster_parts.agents import LIVENESS_MS, TTL_MS, Agent, Cluster, a_cluster, info
from log_parts.engines import finishes
from log_parts.waiting import until
from streamhouse.cluster.shard_placing import CLAIM_MS, UNTAKEN_MS
from streamhouse.cluster.state import AgentState, read_cluster_state
from streamhouse.core.placement.attempts import wait_ms
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.core.placement.transfer import TransferState
from streamhouse.metadata.cluster import Change, Placement
from streamhouse.model.errors import MetadataUnavailable, NotFound, StorageUnavailable, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.testing.clock import MovableClock

ALL = set(range(12))


def held_by(*agents: Agent) -> set[int]:
    """What they hold together, none of it twice."""
    assert sum(len(agent.numbers) for agent in agents) == len({n for agent in agents for n in agent.numbers})
    return {number for agent in agents for number in agent.numbers}


async def states(cluster: Cluster) -> set[TransferState]:
    return {transfer.state for transfer in await cluster.store.list_transfers()}


# --- nobody's ---


async def test_an_agent_alone_takes_everything_in_one_look() -> None:
    async with a_cluster() as cluster:
        agent = await cluster.join("a")
        await cluster.topic()

        await agent.look()

        assert agent.numbers == ALL
        assert set(agent.shards.held_shards) == set(range(SHARD_COUNT))


async def test_a_topic_that_grows_is_led_whole_after_one_look_of_each() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        topic = await cluster.topic()
        await cluster.settle(2)
        before = {placement.partition: placement.epoch for placement in await cluster.placements()}

        await cluster.store.grow_topic(topic, 24)
        for agent in agents:
            await agent.look()

        assert held_by(*agents) == set(range(24))
        epochs = {placement.partition: placement.epoch for placement in await cluster.placements()}
        assert epochs.items() >= before.items()
        assert await cluster.store.list_transfers() == []


async def test_a_partition_that_comes_between_the_looks_at_topics_and_at_leases_waits_for_the_next_round() -> None:
    async with a_cluster() as cluster:
        agent = await cluster.join("a")
        topic = await cluster.topic()
        await agent.look()
        refresh = agent.catalog.refresh

        async def grown_since() -> None:
            await refresh()
            await cluster.store.grow_topic(topic, 13)

        agent.catalog.refresh = grown_since  # type: ignore[method-assign]
        await agent.look()
        assert agent.numbers == ALL

        await agent.look()
        assert agent.numbers == ALL | {12}


async def test_agents_that_come_together_share_without_any_transfer() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "abc"]
        await cluster.topic()

        for agent in agents:
            await agent.look()

        assert held_by(*agents) == ALL
        assert all(agent.numbers for agent in agents)
        assert sum(len(agent.shards.held_shards) for agent in agents) == SHARD_COUNT
        assert await cluster.store.list_transfers() == []


async def test_a_look_at_what_is_as_it_should_be_changes_nothing() -> None:
    async with a_cluster() as cluster:
        agents = [await cluster.join(name) for name in "ab"]
        await cluster.topic()
        await cluster.settle(2)
        before = {placement.partition: placement.epoch for placement in await cluster.placements()}

        await cluster.settle(3)

        assert {placement.partition: placement.epoch for placement in await cluster.placements()} == before
        assert held_by(*agents) == ALL


async def test_what_an_earlier_process_of_the_agent_held_is_taken_again_at_once() -> None:
    async with a_cluster() as cluster:
        topic = await cluster.topic(2)
        partitions = [TopicPartition(topic.topic_id, number) for number in range(2)]
        await cluster.store.acquire_leases("a", partitions, TTL_MS)
        agent = await cluster.join("a")

        await agent.look()

        assert {lease.epoch for lease in agent.partitions.leases.values()} == {2}
        assert agent.partitions.taken_over == {}


async def test_what_is_on_another_agents_disk_is_left_to_it_although_nobody_holds_it() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), Agent(cluster, info("b"))
        await cluster.topic()
        a.partitions.in_local_wal = True
        await a.look()
        await b.membership.register()
        cluster.clock.pass_time(TTL_MS + 1)
        await b.membership.beat()

        await b.look()

        assert b.numbers == set()
        assert {placement.wal_agent_id for placement in await cluster.placements()} == {"a"}


async def test_what_is_on_an_agents_own_disk_it_takes_although_another_should_have_it() -> None:
    """And hands it over when nothing is left on the disk."""
    async with a_cluster() as cluster:
        first = await cluster.join("a")
        await cluster.topic()
        first.partitions.in_local_wal = True
        await first.look()
        cluster.agents.clear()
        b = await cluster.join("b")
        again = await cluster.join("a")
        await again.look()
        assert again.numbers == ALL

        await cluster.settle()

        assert held_by(again, b) == ALL
        assert b.numbers
        assert {transfer.state for transfer in await cluster.store.list_transfers()} == {TransferState.COMPLETED}


# --- coming ---


async def test_an_agent_that_comes_gets_its_share_by_transfers() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        b = await cluster.join("b")

        await cluster.settle()

        assert held_by(a, b) == ALL
        assert a.numbers
        assert b.numbers
        assert {transfer.partition.partition for transfer in a.partitions.handed_over} == b.numbers
        assert await states(cluster) == {TransferState.COMPLETED}


async def test_a_hand_over_takes_each_step_in_a_look_of_its_agent() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        b = await cluster.join("b")

        await a.look()
        assert await states(cluster) == {TransferState.PENDING}
        assert (a.numbers, a.nudged) == (ALL, ["b"])
        await b.look()
        assert await states(cluster) == {TransferState.ACCEPTED}
        await a.look()
        assert await states(cluster) == {TransferState.COMPLETED}
        assert a.nudged == ["b", "b"]
        moved = ALL - a.numbers
        await b.look()
        assert b.numbers == moved


async def test_the_host_is_told_which_leases_a_transfer_has_made_its_own() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        b = await cluster.join("b")

        await cluster.settle()

        assert {partition.partition for partition in b.partitions.taken_over} == b.numbers
        assert set(b.partitions.taken_over.values()) == {2}


async def test_the_host_is_told_once_of_a_lease_that_a_transfer_has_made_its_own() -> None:
    """Its leadership may have begun before taking up others failed. When it has ended, the next is of a new epoch."""
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        b = await cluster.join("b")
        for agent in (a, b, a):
            await agent.look()
        lead = b.partitions.lead
        told: list[Mapping[TopicPartition, int]] = []

        async def fail_once(wanted: Mapping[TopicPartition, Topic], handed_over: Mapping[TopicPartition, int]) -> None:
            told.append(handed_over)
            if len(told) == 1:
                raise StorageUnavailable("not everything could be read")
            await lead(wanted, handed_over)

        b.partitions.lead = fail_once  # type: ignore[method-assign]
        with pytest.raises(StorageUnavailable):
            await b.look()
        await b.look()

        assert {partition.partition for partition in told[0]} == ALL - a.numbers == b.numbers
        assert told[1] == {}


async def test_an_agent_that_comes_gets_shards_that_the_others_let_go() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.look()
        b = await cluster.join("b")

        await cluster.settle()

        assert set(a.shards.held_shards) | set(b.shards.held_shards) == set(range(SHARD_COUNT))
        assert not set(a.shards.held_shards) & set(b.shards.held_shards)
        assert b.shards.held_shards


async def test_a_transfer_that_nobody_answered_in_time_is_begun_again() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        b = await cluster.join("b")
        await a.look()
        cluster.clock.pass_time(11_000)
        await b.membership.beat()

        await cluster.settle()

        assert held_by(a, b) == ALL
        assert b.numbers
        assert await states(cluster) == {TransferState.FAILED, TransferState.COMPLETED}


# --- hand-overs that fail ---


async def a_hand_over_that_fails(cluster: Cluster) -> tuple[Agent, Agent]:
    """Tried once."""
    a = await cluster.join("a")
    await cluster.topic()
    await a.look()
    b = await cluster.join("b")
    a.partitions.problem = "the disk is slow"
    for agent in (a, b, a):
        await agent.look()
    assert a.partitions.tries == 1
    return a, b


async def test_a_hand_over_that_fails_is_tried_later_and_later() -> None:
    async with a_cluster() as cluster:
        a, b = await a_hand_over_that_fails(cluster)

        for failures in (1, 2, 3):
            cluster.clock.pass_time(wait_ms(failures) - 500)
            await cluster.settle(3)
            assert a.partitions.tries == failures, "not yet"
            cluster.clock.pass_time(500)
            await cluster.settle(3)
            assert a.partitions.tries == failures + 1

        a.partitions.problem = ""
        cluster.clock.pass_time(wait_ms(4))
        await b.membership.beat()
        await cluster.settle()
        assert held_by(a, b) == ALL
        assert b.numbers
        assert not a.assigner.hand_overs.stuck


async def test_why_a_hand_over_failed_is_stored_with_it_and_counted() -> None:
    async with a_cluster() as cluster:
        a, _ = await a_hand_over_that_fails(cluster)

        transfers = await cluster.store.list_transfers()
        assert {(transfer.state, transfer.reason) for transfer in transfers} == {
            (TransferState.REJECTED, "the disk is slow")
        }
        assert a.assigner.hand_overs.results == {"done": 0, "failed": len(transfers)}
        assert not a.assigner.hand_overs.stuck, "once is an accident"
        for failures in (1, 2):
            cluster.clock.pass_time(wait_ms(failures))
            await cluster.settle(3)
        assert {failing.reason for failing in a.assigner.hand_overs.stuck.values()} == {"the disk is slow"}
        assert len(a.assigner.hand_overs.stuck) == len(transfers)


async def test_who_never_answers_is_asked_less_and_less_often() -> None:
    """As often as not it is one that hangs."""
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        await cluster.join("b")
        asked = []
        for _ in range(24):
            await a.look()
            asked.append(len(await cluster.store.list_transfers()))
            cluster.clock.pass_time(2_000)
        moved = asked[0]
        assert moved > 0
        assert asked[-1] <= 4 * moved, "of 24 looks in 48 s, each further try is later than the one before"


async def test_more_transfers_than_are_listed_by_default_are_no_failures() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic(2_200)
        await a.look()
        b = await cluster.join("b")
        await a.look()
        begun = a.assigner.hand_overs.to_hand_over
        assert begun > 1_000

        await a.look()

        assert a.assigner.hand_overs.results["failed"] == 0
        assert not a.assigner.hand_overs.stuck
        for agent in (b, a):
            await agent.look()
        assert a.assigner.hand_overs.results == {"done": begun, "failed": 0}


async def test_a_restart_calls_all_transfers_off_however_many() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic(2_200)
        await a.look()
        await cluster.join("b")
        await a.look()

        await Agent(cluster, info("a")).assigner._call_off("the agent has started anew")

        assert await cluster.store.list_transfers("a") == []


async def test_another_destination_is_tried_at_once() -> None:
    async with a_cluster() as cluster:
        a, _ = await a_hand_over_that_fails(cluster)
        tried = len(await cluster.store.list_transfers())
        partition = next(iter(a.partitions.held))
        c = await cluster.join("c", group="other")
        await cluster.store.pin_partition(partition, "c")
        a.partitions.problem = ""

        for agent in (a, c, a):
            await agent.look()

        assert len(await cluster.store.list_transfers()) == tried + 1
        assert [transfer.partition for transfer in a.partitions.handed_over] == [partition]


# --- dying ---


async def a_dead_one_of_three(cluster: Cluster) -> tuple[Agent, Agent, str]:
    """The two that live on, after the leases of the third have run out and long before its heartbeat is too old."""
    a, b, dead = [await cluster.join(name) for name in "abc"]
    await cluster.topic()
    await cluster.settle(2)
    assert dead.numbers
    assert dead.shards.held_shards
    cluster.agents.remove(dead)
    cluster.clock.pass_time(TTL_MS + 1)
    for agent in (a, b):
        await agent.membership.beat()
        await agent.keep_leases()
    return a, b, dead.agent_id


async def test_who_was_found_dead_stays_dead_when_its_last_lease_has_changed_hands() -> None:
    async with a_cluster() as cluster:
        a, b, dead = await a_dead_one_of_three(cluster)

        await cluster.settle()

        assert held_by(a, b) == ALL
        assert len(a.shards.held_shards) + len(b.shards.held_shards) == SHARD_COUNT
        assert await cluster.store.list_transfers() == []
        state = await read_cluster_state(cluster.store, LIVENESS_MS)
        assert state.states()[dead] is AgentState.SILENT
        assert state.state_of(state.agent(dead)) is AgentState.SILENT
        newcomer = Agent(cluster, info("d"), is_observer=True)
        await newcomer.look()
        assert {row.info.agent_id for row in newcomer.view.live} == {"a", "b"}
        assert {row.info.agent_id for row in newcomer.view.reachable} == {"a", "b"}


async def test_who_was_found_dead_takes_its_part_again_after_a_heartbeat() -> None:
    async with a_cluster() as cluster:
        a, b, dead = await a_dead_one_of_three(cluster)
        await cluster.settle()

        await cluster.store.heartbeat_agent(dead)
        again = Agent(cluster, info(dead))
        cluster.agents.append(again)
        await cluster.settle()

        assert held_by(a, b, again) == ALL
        assert again.numbers
        assert again.shards.held_shards


async def test_a_row_made_by_hand_takes_nothing_from_anybody() -> None:
    """Without an address or a node id nobody could reach it."""
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await cluster.settle(2)
        await cluster.store.register_agent(replace(info("by-hand"), kafka_address=""), 0)

        await cluster.settle()

        assert a.numbers == ALL
        assert len(a.shards.held_shards) == SHARD_COUNT
        assert await cluster.store.list_transfers() == []


# --- shards ---


async def test_a_shard_is_let_go_only_to_who_asks_for_it() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.look()
        b = await cluster.join("b")

        for _ in range(3):
            await a.look()
        assert len(a.shards.held_shards) == SHARD_COUNT, "b has not asked for any"
        await b.look()
        await a.look()
        await b.look()

        assert b.shards.held_shards
        assert len(a.shards.held_shards) + len(b.shards.held_shards) == SHARD_COUNT


async def test_who_has_asked_for_a_shard_long_ago_does_not_get_it() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.look()
        b = await cluster.join("b")
        await b.look()

        cluster.clock.pass_time(CLAIM_MS)
        await a.look()

        assert len(a.shards.held_shards) == SHARD_COUNT


async def test_a_shard_that_nobody_came_for_is_taken_back_and_kept_for_a_while() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.look()
        b = await cluster.join("b")
        await b.look()
        await a.look()
        assert len(a.shards.held_shards) < SHARD_COUNT

        cluster.clock.pass_time(UNTAKEN_MS)
        await a.look()
        assert len(a.shards.held_shards) == SHARD_COUNT
        await b.look()
        await a.look()
        assert len(a.shards.held_shards) == SHARD_COUNT, "it is not let go again at once"
        assert a.assigner.shard_placing.to_hand_over

        assert a.assigner.shard_placing.next_look_ms() == wait_ms(1), "nothing else would wake it when it may"
        cluster.clock.pass_time(wait_ms(1))
        await cluster.settle()
        assert b.shards.held_shards
        assert a.assigner.shard_placing.to_hand_over == 0


async def test_a_shard_that_nobody_came_for_nor_asks_for_again_is_nothing_to_look_for() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.look()
        b = await cluster.join("b")
        await b.look()
        await a.look()
        cluster.clock.pass_time(UNTAKEN_MS)
        await a.look()

        cluster.clock.pass_time(wait_ms(1))
        await a.look()

        assert a.assigner.shard_placing.to_hand_over
        assert a.assigner.shard_placing.next_look_ms() is None


# --- going ---


async def test_an_agent_that_drains_hands_over_everything_and_gets_nothing() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a", interval_ms=20), await cluster.join("b", interval_ms=20)
        await cluster.topic()
        await cluster.settle(2)
        await b.assigner.start()

        await finishes(a.assigner.drain(20_000), "the drain")
        await until(lambda: b.numbers == ALL, "the other has it all")

        assert a.numbers == set()
        assert not a.shards.held_shards
        await a.look()
        assert a.numbers == set()


async def test_an_agent_that_drains_alone_does_not_wait() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()

        await finishes(a.assigner.drain(3_600_000), "the drain")

        assert a.numbers == ALL


async def test_a_drain_ends_when_its_time_is_over() -> None:
    async with a_cluster(MovableClock()) as cluster:
        a, _ = await cluster.join("a"), await cluster.join("never looks")
        await cluster.topic()
        await a.look()

        await finishes(a.assigner.drain(300), "the drain")

        assert a.numbers


async def test_a_drain_does_not_wait_for_agents_that_may_not_lead_what_is_left() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b", group="other", interval_ms=20)
        await cluster.topic()
        await a.look()
        await b.assigner.start()

        await finishes(a.assigner.drain(3_600_000), "the drain")

        assert a.numbers == ALL


@pytest.mark.parametrize("step", ["drain_agent", "list_placements", "begin_transfers", "release_shards"])
async def test_a_drain_while_the_store_is_away_gives_up_quietly(step: str) -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b", interval_ms=20)
        await cluster.topic()
        await a.look()
        await b.assigner.start()
        cluster.store.fail(step, times=1_000)

        await finishes(a.assigner.drain(20_000), "the drain")


async def test_a_drain_of_an_agent_that_somebody_removed_gives_up_quietly() -> None:
    """What comes after it, the flush above all, must not be left out."""
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.look()
        await cluster.store.deregister_agent("a")

        await finishes(a.assigner.drain(1_000), "the drain")


async def test_a_transfer_to_an_agent_that_drains_is_rejected() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.look()
        b = await cluster.join("b")
        await a.look()
        await b.membership.drain()

        await b.look()

        assert await states(cluster) == {TransferState.REJECTED}
        await a.look()
        assert a.numbers == ALL


async def test_what_an_agent_that_died_held_is_taken_when_its_leases_have_run_out() -> None:
    async with a_cluster() as cluster:
        a, dead = await cluster.join("a"), await cluster.join("b")
        await cluster.topic()
        await cluster.settle(2)
        assert dead.numbers
        cluster.clock.pass_time(TTL_MS + 1)
        await a.membership.beat()
        await a.keep_leases()

        await a.look()

        assert a.numbers == ALL
        assert set(a.shards.held_shards) == set(range(SHARD_COUNT))


async def test_while_an_agent_is_silent_but_its_leases_are_live_nothing_is_taken() -> None:
    async with a_cluster() as cluster:
        a, silent = await cluster.join("a"), await cluster.join("b")
        await cluster.topic()
        await cluster.settle(2)
        cluster.clock.pass_time(TTL_MS - 1_000)
        await a.membership.beat()

        await a.look()

        assert held_by(a, silent) == ALL


async def test_an_agent_that_others_take_for_dead_shows_that_it_lives() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        cluster.clock.pass_time(LIVENESS_MS + 1)
        await b.look()
        assert [row.info.agent_id for row in b.view.live] == ["b"]

        await a.look()

        assert [row.info.agent_id for row in a.view.live] == ["a", "b"]


async def test_an_agent_that_was_removed_from_the_store_comes_back_with_its_next_look() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await cluster.store.deregister_agent("a")

        await a.look()

        assert a.numbers == ALL


async def test_a_lease_that_came_by_a_transfer_although_another_should_have_it_now_does_not_stay_unled() -> None:
    """While it was handed over, a third agent came, whose it is by the ring: somebody must lead it meanwhile."""
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        topic = await cluster.topic(1)
        partition = TopicPartition(topic.topic_id, 0)
        await a.look()
        b = await cluster.join("b")
        await cluster.store.pin_partition(partition, "b")
        await a.look()
        await b.look()
        await cluster.store.pin_partition(partition, "a")
        await a.look()
        assert a.numbers == set(), "the transfer was completed all the same"

        await cluster.settle()

        assert held_by(a, b) == {0}


# --- who may lead ---


async def test_only_agents_of_a_topics_group_lead_it() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b", group="fast")
        await cluster.topic(agent_group="fast")

        await cluster.settle()

        assert (a.numbers, b.numbers) == (set(), ALL)


async def test_a_topic_is_led_in_its_zone_while_an_agent_is_there() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a", zone="east")
        await cluster.topic(zone="west")
        await cluster.settle(2)
        assert a.numbers == ALL
        b = await cluster.join("b", zone="west")

        await cluster.settle()

        assert (a.numbers, b.numbers) == (set(), ALL)


async def test_what_an_operator_pinned_goes_there_and_comes_back() -> None:
    async with a_cluster() as cluster:
        a, b = await cluster.join("a"), await cluster.join("b")
        topic = await cluster.topic()
        await cluster.settle(2)
        (number, *_) = a.numbers
        partition = TopicPartition(topic.topic_id, number)
        await cluster.store.pin_partition(partition, "b")
        await cluster.settle()
        assert number in b.numbers
        assert held_by(a, b) == ALL

        await cluster.store.pin_partition(partition, "")
        await cluster.settle()

        assert number in a.numbers


async def test_a_topic_that_is_gone_is_nobodys_business() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        topic = await cluster.topic()
        await a.look()
        await cluster.store.delete_topic(topic.topic_id)
        await cluster.join("b")

        await cluster.settle(2)

        assert await cluster.store.list_transfers() == []


# --- looking ---


async def test_an_observer_sees_everything_and_takes_nothing() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        topic = await cluster.topic()
        await a.look()
        observer = Agent(cluster, info("watcher"), is_observer=True)

        await observer.look()

        found = observer.view.leader_of(TopicPartition(topic.topic_id, 3))
        assert found is not None
        assert found.agent.info.agent_id == "a"
        assert (observer.numbers, list(observer.shards.held_shards)) == (set(), [])
        assert [row.info.agent_id for row in await cluster.store.list_agents()] == ["a"]


async def test_the_first_look_is_over_when_the_start_is() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()

        await a.assigner.start()

        assert a.numbers == ALL


async def test_a_start_while_the_store_is_away_fails() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        cluster.store.fail("list_placements")

        with pytest.raises(MetadataUnavailable):
            await a.assigner.start()


async def test_a_change_wakes_the_agent_long_before_its_interval() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.assigner.start()
        end = cluster.store.subscribe(a.assigner.wake)

        await cluster.topic()

        await until(lambda: a.numbers == ALL, "the new topic is led")
        end()


async def test_many_changes_at_once_are_one_look() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        await a.assigner.start()
        cluster.store.calls.clear()

        for change in list(Change) * 50:
            a.assigner.wake(change)
        await until(lambda: "list_shard_placements" in cluster.store.calls, "a look")
        await until(lambda: cluster.store.calls[-1] == "list_transfers", "the look is over")

        assert cluster.store.calls.count("list_placements") == 1


async def test_those_who_ask_together_share_a_look_that_began_after_they_asked() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.assigner.start()
        cluster.store.calls.clear()

        await asyncio.gather(*(a.assigner.look_now() for _ in range(50)))

        assert cluster.store.calls.count("list_placements") == 1


async def test_a_look_is_carried_through_though_whoever_asked_no_longer_waits() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await cluster.topic()
        asking = asyncio.create_task(a.assigner.look_now())
        await until(lambda: "list_placements" in cluster.store.calls, "the look has begun")

        asking.cancel()

        with pytest.raises(asyncio.CancelledError):
            await asking
        await until(lambda: a.numbers == ALL, "the look is carried through")


async def test_who_waits_for_a_look_when_the_agent_stops_is_told_so() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        looking = asyncio.Event()

        async def never_answers() -> list[Placement]:
            looking.set()
            return await asyncio.Future()

        cluster.store.list_placements = never_answers  # type: ignore[method-assign]
        asking = asyncio.create_task(a.assigner.look_now())
        await finishes(looking.wait(), "the look has begun")

        await a.assigner.stop()

        with pytest.raises(Unavailable, match="stopping"):
            await asking


async def test_who_asks_while_a_look_is_under_way_gets_the_next_one() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        first = asyncio.create_task(a.assigner.look_now())
        await until(lambda: "list_placements" in cluster.store.calls, "the first look")
        await cluster.topic()

        await asyncio.gather(first, a.assigner.look_now())

        assert a.numbers == ALL


async def test_a_look_that_failed_is_shared_with_nobody() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        cluster.store.fail("list_placements")

        answers = await asyncio.gather(*(a.assigner.look_now() for _ in range(2)), return_exceptions=True)

        # The second one looks again by itself, and its look succeeds.
        assert isinstance(answers[0], MetadataUnavailable)
        assert answers[1] is None
        assert cluster.store.calls.count("list_placements") == 2


async def test_without_any_change_it_looks_from_time_to_time() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a", interval_ms=20)
        await a.assigner.start()

        await until(lambda: cluster.store.calls.count("list_placements") >= 5, "five looks")


async def test_it_looks_when_another_agents_lease_is_about_to_run_out() -> None:
    async with a_cluster(MovableClock()) as cluster:
        a = await cluster.join("a")
        topic = await cluster.topic(1)
        await cluster.store.acquire_leases("gone", [TopicPartition(topic.topic_id, 0)], 2_000)

        await a.assigner.start()
        assert a.numbers == set()

        await until(lambda: a.numbers == {0}, "it is taken over", timeout=30)


@pytest.mark.parametrize(
    "step",
    [
        "list_agents",
        "list_placements",
        "list_transfers",
        "list_topics",
        "acquire_leases",
        "begin_epochs",
        "acquire_shards",
    ],
)
@pytest.mark.parametrize("lost_answer", [False, True])
async def test_a_look_that_fails_is_made_again_soon(step: str, lost_answer: bool) -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.assigner.start()
        await a.shards.release_shards(list(a.shards.held_shards))
        await cluster.topic()
        cluster.store.fail(step, lost_answer=lost_answer)

        a.assigner.wake()

        await until(lambda: a.numbers == ALL and len(a.shards.held_shards) == SHARD_COUNT, "all is taken")


@pytest.mark.parametrize("step", ["begin_transfers", "accept_transfers", "complete_transfers"])
async def test_a_hand_over_whose_step_fails_comes_to_its_end(step: str) -> None:
    async with a_cluster() as cluster:
        a, b = [await cluster.join(name, interval_ms=20) for name in "ab"]
        topic = await cluster.topic()
        for agent in (a, b):
            await agent.assigner.start()
        await until(lambda: held_by(a, b) == ALL, "all is led")
        cluster.store.fail(step, times=2)

        for number in ALL:
            await cluster.store.pin_partition(TopicPartition(topic.topic_id, number), "b")

        await until(lambda: b.numbers == ALL, "all is handed over")


async def test_a_look_that_was_overtaken_is_made_again() -> None:
    async with a_cluster() as cluster:
        a = await cluster.join("a")
        await a.assigner.start()
        await cluster.topic()
        cluster.store.fail("acquire_leases", error=NotFound("the topic is gone"))

        a.assigner.wake()

        await until(lambda: a.numbers == ALL, "all is taken")
