"""What the suites about the cluster share: agents, where a partition is, transfers, objects of the WAL, and what a
subscriber heard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from behaviour.metadata_stores import AGENT, OTHER, TTL_MS, acquire, epoch_start
from streamhouse.metadata.cluster import AgentInfo, Change, Placement, Transfer
from streamhouse.metadata.store import Lease, MetadataStore
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.names import TopicPartition

TIMEOUT_MS = 20_000


def agent(agent_id: str = AGENT, *, zone: str = "zone-a", group: str = "default") -> AgentInfo:
    return AgentInfo(
        agent_id=agent_id,
        address=f"{agent_id}:9094",
        kafka_address=f"{agent_id}:9092",
        zone=zone,
        agent_group=group,
    )


async def placement_of(store: MetadataStore, partition: TopicPartition) -> Placement:
    (found,) = [placement for placement in await store.list_placements() if placement.partition == partition]
    return found


async def acquire_with_local_wal(store: MetadataStore, partition: TopicPartition, agent_id: str = AGENT) -> Lease:
    """Lead it, and begin to write to this agent's own disk."""
    lease = await acquire(store, partition, agent_id)
    await store.begin_epochs(agent_id, [epoch_start(lease, 0, in_local_wal=True)])
    return lease


async def begin_transfer(store: MetadataStore, lease: Lease, to_agent_id: str = OTHER) -> Transfer:
    (transfer,) = await store.begin_transfers(lease.agent_id, [(lease.partition, to_agent_id)], TIMEOUT_MS)
    assert transfer is not None
    return transfer


async def accepted_transfer(store: MetadataStore, lease: Lease, to_agent_id: str = OTHER) -> Transfer:
    transfer = await begin_transfer(store, lease, to_agent_id)
    await store.accept_transfers(to_agent_id, [transfer.transfer_id])
    return transfer


async def complete(store: MetadataStore, transfer: Transfer, lease: Lease, end_offset: int = 0) -> Exception | None:
    (answer,) = await store.complete_transfers(
        lease.agent_id, [(transfer.transfer_id, lease.epoch, end_offset)], TTL_MS
    )
    return answer


def wal_commit(*parts: tuple[Lease, int, int], agent_id: str = AGENT, commit_id: UUID | None = None) -> WalCommit:
    """An object with these ranges, [base, end) each, one after the other."""
    commit_id = commit_id or uuid4()
    object_key = f"wal/{agent_id}/{commit_id}"
    ranges = tuple(
        WalRange(
            partition=lease.partition,
            epoch=lease.epoch,
            base_offset=base_offset,
            end_offset=end_offset,
            position=number * 1000,
            size_bytes=1000,
            checksum=2**32 - 1 - number,
            object_key=object_key,
        )
        for number, (lease, base_offset, end_offset) in enumerate(parts)
    )
    return WalCommit(
        object_key=object_key,
        commit_id=commit_id,
        agent_id=agent_id,
        size_bytes=1000 * len(parts),
        ranges=ranges,
    )


class Heard:
    """Every change that a subscriber was told of."""

    def __init__(self) -> None:
        self.changes: list[Change] = []
        self._news = asyncio.Event()

    def __call__(self, change: Change) -> None:
        self.changes.append(change)
        self._news.set()

    def forget(self) -> None:
        self.changes.clear()

    async def until(self, *wanted: Change) -> None:
        """Until all of these were heard."""
        while not set(wanted) <= set(self.changes):
            self._news.clear()
            await self._news.wait()


@asynccontextmanager
async def listening(store: MetadataStore) -> AsyncIterator[Heard]:
    """A subscriber that hears all that is done from now on."""
    heard = Heard()
    end = store.subscribe(heard)
    # Once it hears of this it is connected, and then it may have heard of everything.
    probe = await store.create_topic(f"probe-{uuid4()}", uuid4(), 1, {})
    await heard.until(Change.TOPICS)
    await store.delete_topic(probe.topic_id)
    await settled(store)
    heard.forget()
    yield heard
    end()


async def settled(store: MetadataStore) -> None:
    """Until whatever was done before has been told: the order of what is told is the order in which it was done."""
    heard = Heard()
    end = store.subscribe(heard)
    await store.register_agent(agent(f"probe-{uuid4()}"), 0)
    await heard.until(Change.AGENTS)
    end()
