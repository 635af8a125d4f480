"""Coordinators, each of an agent of its own, and what members say to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from group_parts.store import WatchedStore
from log_parts.waiting import until
from streamhouse.core.groups.classic_messages import ClassicLimits, JoinReply, JoinRequest, MemberClaim, SyncRequest
from streamhouse.core.groups.classic_snapshot import GroupDescription
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits
from streamhouse.core.groups.consumer_target import Topics
from streamhouse.core.groups.group_kind import MigrationPolicy
from streamhouse.core.placement.shards import SHARD_COUNT
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.metadata.groups import CommittedOffset
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.entropy import new_uuid
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol

GROUP = "g"
ALL_SHARDS = range(SHARD_COUNT)
TTL_MS = 30_000
SESSION_MS = 60_000
"""Longer than any test waits for something that does not come."""
NOBODY = MemberClaim(member_id="", generation=-1)


def new_coordinator(
    store: WatchedStore,
    clock: Clock,
    agent_id: str = "agent",
    *,
    renewal_ms: int = 10_000,
    topics: Callable[[], Topics] = dict,
    lost: Callable[[], None] | None = None,
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL,
) -> GroupCoordinator:
    return GroupCoordinator(
        agent_id=agent_id,
        store=store,  # type: ignore[arg-type]
        clock=clock,
        topics=topics,
        lease_ttl_ms=TTL_MS,
        lease_renewal_ms=renewal_ms,
        offsets_retention_ms=60_000,
        classic_limits=ClassicLimits(initial_rebalance_delay_ms=0),
        consumer_limits=ConsumerLimits(migration=migration),
        embedded=KafkaEmbeddedProtocol(),
        lost=lost,
    )


@asynccontextmanager
async def coordinating(
    store: WatchedStore,
    clock: Clock,
    agent_id: str = "agent",
    *,
    shards: Sequence[int] = ALL_SHARDS,
    **options: Any,
) -> AsyncIterator[GroupCoordinator]:
    """One that has these shards, as far as nobody else has, and does not renew them."""
    coordinator = new_coordinator(store, clock, agent_id, **options)
    await coordinator.acquire_shards(shards)
    try:
        yield coordinator
    finally:
        await coordinator.stop()


def joining(member_id: str = "") -> JoinRequest:
    return JoinRequest(
        member_id=member_id,
        new_member_id=f"member-{new_uuid()}",
        client_id="c",
        client_host="h",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=(("range", b"m"),),
        requires_member_id=False,
    )


def claim_of(reply: JoinReply) -> MemberClaim:
    return MemberClaim(member_id=reply.member_id, generation=reply.generation)


async def only_member(coordinator: GroupCoordinator, group_id: str = GROUP) -> MemberClaim:
    """Of a group that is stable, with everything assigned to that member."""
    joined = await coordinator.join(group_id, joining())
    assert joined.error is None
    claim = claim_of(joined)
    share = {claim.member_id: b"everything"}
    synced = await coordinator.sync(group_id, SyncRequest(claim=claim, assignments=share))
    assert (synced.error, synced.assignment) == (None, b"everything")
    return claim


async def park(coordinator: GroupCoordinator, count: int, group_id: str = GROUP) -> list[asyncio.Task[JoinReply]]:
    """New members that wait for the others of their group, none of which joins again."""
    before = _member_count(coordinator, group_id)
    joins = [asyncio.ensure_future(coordinator.join(group_id, joining())) for _ in range(count)]
    await until(lambda: _member_count(coordinator, group_id) == before + count, "the members to join")
    assert not any(join.done() for join in joins)
    return joins


def _member_count(coordinator: GroupCoordinator, group_id: str) -> int:
    described = coordinator.describe(group_id)
    assert isinstance(described, GroupDescription)
    return len(described.members)


async def new_partition(store: WatchedStore) -> TopicPartition:
    topic = await store.real.create_topic(f"topic-{new_uuid()}", new_uuid(), 1, {})
    return TopicPartition(topic.topic_id, 0)


def at(offset: int) -> CommittedOffset:
    return CommittedOffset(offset=offset, leader_epoch=0, metadata="")
