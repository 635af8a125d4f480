"""The owner of a group: one request at a time, stored before it is answered, and nobody left waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from streamhouse.core.groups.classic_messages import ClassicLimits, JoinReply, JoinRequest, MemberClaim
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits
from streamhouse.core.groups.outcome import GroupError
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.metadata.groups import CommittedOffset, GroupRow, ShardLease
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import MetadataUnavailable, StaleEpoch, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.clock import SystemClock
from streamhouse.runtime.entropy import new_uuid

GROUP = "g"


class Watched:
    """A store whose saves can be held or made to fail, and which notes them."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.saved: list[int] = []
        self.problem: StreamHouseError | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def save_group(self, lease: ShardLease, row: GroupRow) -> None:
        await self.gate.wait()
        if self.problem is not None:
            raise self.problem
        await self._store.save_group(lease, row)
        self.saved.append(row.generation)


@asynccontextmanager
async def coordinating(store: Watched) -> AsyncIterator[GroupCoordinator]:
    coordinator = GroupCoordinator(
        agent_id="agent",
        store=store,  # type: ignore[arg-type]
        clock=SystemClock(),
        topics=dict,
        lease_ttl_ms=30_000,
        lease_renewal_ms=10_000,
        offsets_retention_ms=60_000,
        classic_limits=ClassicLimits(initial_rebalance_delay_ms=0),
        consumer_limits=ConsumerLimits(),
    )
    await coordinator.start()
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
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b"m"),),
        requires_member_id=False,
    )


async def until_refused(coordinator: GroupCoordinator, claim: MemberClaim, refusal: GroupError) -> None:
    for _ in range(10_000):
        if await coordinator.heartbeat(GROUP, claim) is refusal:
            return
    raise AssertionError(f"never {refusal}")


async def opened_store() -> tuple[MetadataStore, Watched]:
    metadata = await open_metadata("sqlite::memory:", SystemClock())
    return metadata, Watched(metadata)


async def test_a_generation_is_stored_before_anybody_hears_of_it() -> None:
    metadata, store = await opened_store()
    async with coordinating(store) as coordinator:
        store.gate.clear()
        waiting = asyncio.ensure_future(coordinator.join(GROUP, joining()))
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        assert store.saved == []

        store.gate.set()
        reply = await asyncio.wait_for(waiting, 10)

        assert reply.error is None
        assert store.saved == [reply.generation]
    await metadata.close()


async def test_what_could_not_be_stored_has_not_happened() -> None:
    metadata, store = await opened_store()
    async with coordinating(store) as coordinator:
        store.problem = MetadataUnavailable("away")
        with pytest.raises(MetadataUnavailable):
            await asyncio.wait_for(coordinator.join(GROUP, joining()), 10)
        store.problem = None

        reply = await asyncio.wait_for(coordinator.join(GROUP, joining()), 10)

        assert isinstance(reply, JoinReply)
        assert (reply.error, reply.generation) == (None, 1)
    await metadata.close()


async def test_members_and_generation_come_back_with_the_next_coordinator() -> None:
    metadata, store = await opened_store()
    async with coordinating(store) as coordinator:
        reply = await asyncio.wait_for(coordinator.join(GROUP, joining()), 10)
    async with coordinating(store) as successor:
        claim = MemberClaim(member_id=reply.member_id, generation=reply.generation)
        refusal = await successor.heartbeat(GROUP, claim)
        stranger = await successor.heartbeat(GROUP, MemberClaim(member_id="x", generation=reply.generation))

    assert refusal in (None, GroupError.REBALANCE_IN_PROGRESS)
    assert stranger is GroupError.UNKNOWN_MEMBER_ID
    await metadata.close()


async def test_a_commit_of_a_deposed_coordinator_changes_nothing() -> None:
    metadata, store = await opened_store()
    topic = await metadata.create_topic("t", new_uuid(), 1, {})
    partition = TopicPartition(topic.topic_id, 0)
    offsets = {partition: CommittedOffset(offset=5, leader_epoch=0, metadata="")}
    async with coordinating(store) as deposed, coordinating(store) as successor:
        nobody = MemberClaim(member_id="", generation=-1)
        with pytest.raises(StaleEpoch):
            await deposed.commit(GROUP, nobody, offsets)
        assert await metadata.fetch_group_offsets(GROUP) == {}
        assert await successor.commit(GROUP, nobody, offsets) == {partition: None}
    await metadata.close()


async def test_strangers_do_not_make_groups() -> None:
    metadata, store = await opened_store()
    async with coordinating(store) as coordinator:
        for number in range(100):
            claim = MemberClaim(member_id="m", generation=1)
            assert await coordinator.heartbeat(f"group-{number}", claim) is GroupError.UNKNOWN_MEMBER_ID
        assert coordinator.all_groups() == []
    await metadata.close()


async def test_a_stop_answers_whoever_still_waits() -> None:
    metadata, store = await opened_store()
    async with coordinating(store) as coordinator:
        first = await asyncio.wait_for(coordinator.join(GROUP, joining()), 10)
        # The second one makes a rebalance begin, in which the first one does not take part.
        second = asyncio.ensure_future(coordinator.join(GROUP, joining()))
        claim = MemberClaim(member_id=first.member_id, generation=first.generation)
        await until_refused(coordinator, claim, GroupError.REBALANCE_IN_PROGRESS)
    reply = await asyncio.wait_for(second, 10)
    assert reply.error is GroupError.NOT_COORDINATOR
    await metadata.close()


async def test_a_member_whose_connection_ended_is_gone_before_anybody_else_comes() -> None:
    metadata, store = await opened_store()
    async with coordinating(store) as coordinator:
        first = await asyncio.wait_for(coordinator.join(GROUP, joining()), 10)
        await coordinator.disconnect(GROUP, first.member_id)

        second = await asyncio.wait_for(coordinator.join(GROUP, joining()), 10)

        assert [member.member_id for member in second.members] == [second.member_id]
        assert second.generation > first.generation
        claim = MemberClaim(member_id=first.member_id, generation=first.generation)
        assert await coordinator.heartbeat(GROUP, claim) is GroupError.UNKNOWN_MEMBER_ID
    await metadata.close()
