"""A group with members changes its protocol: in one step that is stored before anybody hears of it, or not at all."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from group_parts.coordinators import GROUP, at, claim_of, coordinating, joining
from group_parts.store import WatchedStore, watched_store
from log_parts.waiting import HUNG_SECONDS, until
from streamhouse.core.groups.classic_messages import JoinReply, JoinRequest, LeavingMember, MemberClaim, SyncRequest
from streamhouse.core.groups.classic_rebalance import ClassicState
from streamhouse.core.groups.classic_snapshot import GroupDescription
from streamhouse.core.groups.consumer_heartbeat import HeartbeatReply, HeartbeatRequest
from streamhouse.core.groups.consumer_snapshot import ConsumerGroupDescription
from streamhouse.core.groups.consumer_target import Topics, TopicShape
from streamhouse.core.groups.group_kind import MigrationPolicy
from streamhouse.core.groups.outcome import GroupError, Refusal
from streamhouse.core.placement.shards import shard_of
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.entropy import new_uuid
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol
from streamhouse.wire.kafka.messages import consumer_protocol_subscription as subscriptions

CLOCK = SystemClock()
TOPIC_ID = new_uuid()
TOPICS: Topics = {"t": TopicShape(TOPIC_ID, 2)}
NEWER = HeartbeatRequest(
    member_id="newer",
    member_epoch=0,
    rebalance_timeout_ms=10_000,
    subscribed_topic_names=("t",),
    owned=frozenset(),
)
METADATA = b"\0\0" + b"".join(subscriptions.encode(subscriptions.ConsumerProtocolSubscription(topics=["t"]), 0))
EVERYTHING = KafkaEmbeddedProtocol().write_assignment([("t", 0), ("t", 1)], METADATA)


def consumer(member_id: str = "") -> JoinRequest:
    return replace(joining(member_id), protocols=(("range", METADATA),))


async def stable_member(coordinator: GroupCoordinator) -> MemberClaim:
    claim = claim_of(await coordinator.join(GROUP, consumer()))
    synced = await coordinator.sync(GROUP, SyncRequest(claim=claim, assignments={claim.member_id: EVERYTHING}))
    assert synced.error is None
    return claim


async def parked(coordinator: GroupCoordinator) -> asyncio.Task[JoinReply]:
    """A new classic member that waits for the other to join again."""
    waiting = asyncio.ensure_future(coordinator.join(GROUP, consumer()))

    def waits() -> bool:
        described = coordinator.describe(GROUP)
        return isinstance(described, GroupDescription) and len(described.members) == 2

    await until(waits, "the member to join")
    return waiting


async def test_nobody_hears_of_the_new_protocol_before_it_is_stored() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK, topics=lambda: TOPICS) as coordinator:
        claim = await stable_member(coordinator)
        waiting = await parked(coordinator)
        store.hold("save_group")
        joins = asyncio.ensure_future(coordinator.consumer_heartbeat(GROUP, NEWER))
        await until(lambda: store.waiting["save_group"], "the group to be stored")
        assert not waiting.done()
        assert not joins.done()

        store.let_through("save_group")
        reply = await asyncio.wait_for(joins, HUNG_SECONDS)
        told = await asyncio.wait_for(waiting, HUNG_SECONDS)

        assert isinstance(reply, HeartbeatReply)
        assert reply.member_epoch > claim.generation
        assert reply.assignment == ()
        assert told.error is GroupError.COORDINATOR_LOAD_IN_PROGRESS
        described = coordinator.describe(GROUP)
        assert isinstance(described, ConsumerGroupDescription)
        assert [member.member_id for member in described.members] == [claim.member_id, "newer"]
        (row,) = await store.real.load_groups(shard_of(GROUP))
        assert row.protocol == "consumer"


async def test_a_conversion_that_could_not_be_stored_has_not_happened() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK, topics=lambda: TOPICS) as coordinator:
        claim = await stable_member(coordinator)
        waiting = await parked(coordinator)
        store.problems["save_group"] = MetadataUnavailable("away")
        with pytest.raises(MetadataUnavailable):
            await coordinator.consumer_heartbeat(GROUP, NEWER)
        assert (await asyncio.wait_for(waiting, HUNG_SECONDS)).error is GroupError.NOT_COORDINATOR
        store.problems.clear()

        assert await coordinator.heartbeat(GROUP, claim) is None, "the classic group is as it was"
        assert isinstance(coordinator.describe(GROUP), GroupDescription)
        assert isinstance(await coordinator.consumer_heartbeat(GROUP, NEWER), HeartbeatReply)


async def test_one_who_is_refused_converts_nothing() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK, topics=lambda: TOPICS) as coordinator:
        await stable_member(coordinator)
        waiting = await parked(coordinator)
        refused = await coordinator.consumer_heartbeat(GROUP, replace(NEWER, server_assignor="by-moonlight"))
        assert refused is GroupError.UNSUPPORTED_ASSIGNOR
        assert isinstance(coordinator.describe(GROUP), GroupDescription)
        assert not waiting.done()
        waiting.cancel()


@pytest.mark.parametrize("policy", [MigrationPolicy.DISABLED, MigrationPolicy.DOWNGRADE])
async def test_where_the_policy_says_no_the_newer_member_hears_why(policy: MigrationPolicy) -> None:
    async with (
        watched_store(CLOCK) as store,
        coordinating(store, CLOCK, topics=lambda: TOPICS, migration=policy) as coordinator,
    ):
        claim = await stable_member(coordinator)
        refused = await coordinator.consumer_heartbeat(GROUP, NEWER)
        assert isinstance(refused, Refusal)
        assert refused.error is GroupError.GROUP_ID_NOT_FOUND
        assert await coordinator.heartbeat(GROUP, claim) is None


async def mixed(coordinator: GroupCoordinator) -> MemberClaim:
    """Both members have one partition each; the claim of the classic one."""
    claim = await stable_member(coordinator)
    await coordinator.consumer_heartbeat(GROUP, NEWER)
    joined = await coordinator.join(GROUP, consumer(claim.member_id))
    claim = claim_of(joined)
    assert (await coordinator.sync(GROUP, SyncRequest(claim=claim))).error is None
    reply = await coordinator.consumer_heartbeat(
        GROUP, HeartbeatRequest(member_id="newer", member_epoch=claim.generation, owned=frozenset())
    )
    assert isinstance(reply, HeartbeatReply)
    assert len(reply.assignment or ()) == 1
    return claim


async def test_with_the_last_newer_member_the_group_is_classic_again_also_for_the_next_coordinator() -> None:
    async with watched_store(CLOCK) as store:
        async with coordinating(store, CLOCK, "a", topics=lambda: TOPICS) as coordinator:
            claim = await mixed(coordinator)
            left = await coordinator.leave(GROUP, [LeavingMember(member_id="newer")])
            assert [one.error for one in left.members] == [None]
            assert await coordinator.heartbeat(GROUP, claim) is GroupError.REBALANCE_IN_PROGRESS
        async with coordinating(store, CLOCK, "b", topics=lambda: TOPICS) as successor:
            described = successor.describe(GROUP)
            assert isinstance(described, GroupDescription)
            assert (described.state, described.generation) == (ClassicState.PREPARING, claim.generation)
            assert await successor.heartbeat(GROUP, claim) is GroupError.REBALANCE_IN_PROGRESS
            joined = await successor.join(GROUP, consumer(claim.member_id))
            assert (joined.error, joined.generation) == (None, claim.generation + 1)


async def test_partitions_that_the_classic_group_never_assigned_are_assigned_after_the_conversion() -> None:
    """Also when a static member changes its protocol, and members and subscriptions are the same as before."""
    async with watched_store(CLOCK) as store:
        grown = {"t": TopicShape(TOPIC_ID, 3)}
        async with coordinating(store, CLOCK, topics=lambda: grown) as coordinator:
            joined = await coordinator.join(GROUP, replace(consumer(), instance_id="i"))
            claim = replace(claim_of(joined), instance_id="i")
            await coordinator.sync(GROUP, SyncRequest(claim=claim, assignments={claim.member_id: EVERYTHING}))
            reply = await coordinator.consumer_heartbeat(GROUP, replace(NEWER, instance_id="i"))
            assert isinstance(reply, HeartbeatReply)
            assert reply.assignment == tuple((TOPIC_ID, partition) for partition in range(3))


async def stored_topic(store: WatchedStore) -> TopicPartition:
    topic = await store.real.create_topic("t", TOPIC_ID, 2, {})
    return TopicPartition(topic.topic_id, 0)


async def test_commits_of_both_protocols_are_taken_at_the_epoch_of_their_member() -> None:
    async with watched_store(CLOCK) as store, coordinating(store, CLOCK, topics=lambda: TOPICS) as coordinator:
        partition = await stored_topic(store)
        claim = await mixed(coordinator)
        newer = MemberClaim(member_id="newer", generation=claim.generation)
        for member in (claim, newer):
            assert await coordinator.commit(GROUP, member, {partition: at(7)}) == {partition: None}
        stale = replace(claim, generation=claim.generation - 1)
        assert await coordinator.commit(GROUP, stale, {partition: at(1)}) is GroupError.ILLEGAL_GENERATION
        await coordinator.leave(GROUP, [LeavingMember(member_id="newer")])
        assert await coordinator.commit(GROUP, claim, {partition: at(8)}) == {partition: None}, "before it joins again"


async def test_topics_that_grew_while_nobody_coordinated_do_not_stop_commits() -> None:
    async with watched_store(CLOCK) as store:
        partition = await stored_topic(store)
        async with coordinating(store, CLOCK, "a", topics=lambda: TOPICS) as coordinator:
            claim = await mixed(coordinator)
        grown = {"t": TopicShape(TOPIC_ID, 3)}
        async with coordinating(store, CLOCK, "b", topics=lambda: grown) as successor:
            assert await successor.commit(GROUP, claim, {partition: at(7)}) == {partition: None}
            assert await successor.heartbeat(GROUP, claim) is GroupError.REBALANCE_IN_PROGRESS
