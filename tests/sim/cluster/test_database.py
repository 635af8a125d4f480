"""The model of the database answers as a real one does: the same calls, drawn from a seed, on both."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any
from unittest.mock import patch
from uuid import UUID

import pytest

from faults.sweep import sweep_seed
from services.clock import ManualClock
from sim.cluster.database import Database
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.cluster import AgentInfo, Transfer
from streamhouse.metadata.sqlite.database import Database as SqliteDatabase
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.metadata.store import EpochStart, Lease, SegmentCommit, SegmentRow
from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime import entropy

AGENTS = ("a", "b", "c")
TTL_MS = 1_000
CALLS = 600


class Both:
    """A call is made on the model and on SQLite, with the same ids drawn in it, and must have the same outcome."""

    def __init__(self, model: Database, real: SqliteMetadataStore) -> None:
        self._model = model
        self._real = real
        self.calls = 0

    async def __call__(self, name: str, *args: Any, **options: Any) -> Any:
        self.calls += 1
        with patch.object(entropy, "uuid4", _ids(self.calls)):
            try:
                expected: Any = await getattr(self._real, name)(*args, **options)
            except StreamHouseError as problem:
                expected = problem
        with patch.object(entropy, "uuid4", _ids(self.calls)):
            try:
                found = getattr(self._model, name)(*args, **options)
            except StreamHouseError as problem:
                found = problem
        assert _comparable(found) == _comparable(expected), f"call {self.calls}: {name}{args}{options}"
        return expected


def _ids(number: int) -> Any:
    random = Random(number)
    return lambda: UUID(int=random.getrandbits(128), version=4)


def _comparable(outcome: Any) -> Any:
    """Refusals are compared by kind, and what has no order by content."""
    if isinstance(outcome, list):
        return [_comparable(item) for item in outcome]
    return type(outcome) if isinstance(outcome, Exception) else outcome


class Driver:
    """Draws calls that mean something: mostly on what the calls before have made, sometimes on what is long gone."""

    def __init__(self, random: Random, both: Both, partitions: list[TopicPartition]) -> None:
        self._random = random
        self._both = both
        self._partitions = partitions
        self._leases = [
            Lease(partition=partition, agent_id=agent_id, epoch=1, expires_at_ms=0)
            for partition in partitions
            for agent_id in AGENTS
        ]
        self._transfers: list[Transfer] = []
        self._segment_commits: list[SegmentCommit] = []
        self._wal_commits: list[WalCommit] = []
        self._numbers: Iterator[int] = iter(range(1, 10**6))

    async def step(self) -> None:
        calls = (
            self._acquire,
            self._keep,
            self._release,
            self._begin,
            self._commit_segment,
            self._commit_wal_object,
            self._transfer,
            self._agent,
            self._operate,
            self._grow,
        )
        await self._random.choice(calls)()
        await self._both("list_placements")

    async def look(self) -> None:
        """Everything there is."""
        await self._both("load_partitions", self._partitions)
        await self._both("load_segments", self._partitions)
        await self._both("load_wal_ranges", self._partitions)
        await self._both("list_wal_object_keys")
        await self._both("list_garbage", 0, 1_000)
        await self._both("list_agents")

    def _lease(self) -> Lease:
        return self._random.choice(self._leases[-4:] if self._random.random() < 0.8 else self._leases)

    async def _acquire(self) -> None:
        some = self._random.sample(self._partitions, self._random.randint(1, len(self._partitions)))
        granted = await self._both("acquire_leases", self._random.choice(AGENTS), some, TTL_MS)
        self._leases += [lease for lease in granted if lease is not None]

    async def _keep(self) -> None:
        lease = self._lease()
        await self._both("renew_leases", lease.agent_id, [lease], TTL_MS)

    async def _release(self) -> None:
        lease = self._lease()
        await self._both("release_leases", lease.agent_id, [lease], drained=self._random.random() < 0.5)

    async def _begin(self) -> None:
        lease = self._lease()
        (row,) = await self._both("load_partitions", [lease.partition])
        start = EpochStart(lease=lease, offset=row.durable_end, in_local_wal=self._random.random() < 0.3)
        await self._both("begin_epochs", lease.agent_id, [start])

    async def _commit_segment(self) -> None:
        lease = self._lease()
        (row,) = await self._both("load_partitions", [lease.partition])
        base_offset = row.next_offset + self._random.choice((0, 0, 0, 1))
        number = next(self._numbers)
        commit = SegmentCommit(
            partition=lease.partition,
            agent_id=lease.agent_id,
            epoch=lease.epoch,
            commit_id=UUID(int=number),
            segment=SegmentRow(
                base_offset=base_offset,
                end_offset=base_offset + self._random.randint(1, 4),
                record_count=1,
                size_bytes=100,
                min_timestamp_ms=1,
                max_timestamp_ms=2,
                epoch=lease.epoch,
                object_key=f"segments/{number}",
                checksum=number,
            ),
            producer_state=b"%d" % number,
        )
        self._segment_commits.append(commit)
        again = self._random.choice(self._segment_commits)
        await self._both("commit_segments", [commit] if self._random.random() < 0.7 else [again, commit])

    async def _commit_wal_object(self) -> None:
        lease = self._lease()
        (row,) = await self._both("load_partitions", [lease.partition])
        base_offset = row.durable_end + self._random.choice((0, 0, 0, 1))
        number = next(self._numbers)
        wal_range = WalRange(
            partition=lease.partition,
            epoch=lease.epoch,
            base_offset=base_offset,
            end_offset=base_offset + 2,
            position=0,
            size_bytes=10,
            checksum=number,
            object_key=f"wal/{number}",
        )
        following = replace(wal_range, base_offset=base_offset + 2, end_offset=base_offset + 3, position=10)
        commit = WalCommit(
            object_key=f"wal/{number}",
            commit_id=UUID(int=number),
            agent_id=lease.agent_id,
            size_bytes=20,
            ranges=(wal_range, following),
        )
        self._wal_commits.append(commit)
        again = self._random.choice(self._wal_commits[-3:])
        await self._both("commit_wal_objects", [commit] if self._random.random() < 0.7 else [again, commit])
        if self._random.random() < 0.2:
            await self._both("retire_wal_objects", self._random.randint(1, 5))

    async def _transfer(self) -> None:
        lease = self._lease()
        to_agent_id = self._random.choice([agent_id for agent_id in AGENTS if agent_id != lease.agent_id])
        begun = await self._both("begin_transfers", lease.agent_id, [(lease.partition, to_agent_id)], 3 * TTL_MS)
        self._transfers += [transfer for transfer in begun if transfer is not None]
        for transfer in self._transfers[-2:]:
            await self._both("list_transfers", transfer.to_agent_id)
            agent_id = self._random.choice((transfer.to_agent_id, transfer.from_agent_id))
            if self._random.random() < 0.8:
                await self._both("accept_transfers", agent_id, [transfer.transfer_id])
            else:
                await self._both("reject_transfers", agent_id, [transfer.transfer_id], "no")
            (row,) = await self._both("load_partitions", [transfer.partition])
            completion = (transfer.transfer_id, self._lease().epoch, row.durable_end)
            await self._both("complete_transfers", transfer.from_agent_id, [completion], TTL_MS)

    async def _agent(self) -> None:
        agent_id = self._random.choice(AGENTS)
        info = AgentInfo(agent_id=agent_id, address="", kafka_address="k:1", zone="", agent_group="default")
        call = self._random.choice(
            ("register_agent", "heartbeat_agent", "drain_agent", "say_store_access", "deregister_agent")
        )
        more = {"say_store_access": (self._random.choice(list(StoreAccess)),)}.get(call, ())
        await self._both(call, *((info, 0) if call == "register_agent" else (agent_id, *more)))

    async def _operate(self) -> None:
        partition = self._random.choice(self._partitions)
        if self._random.random() < 0.5:
            await self._both("pin_partition", partition, self._random.choice(("", *AGENTS)))
        else:
            await self._both("elect_unclean", partition)

    async def _grow(self) -> None:
        """Seldom to more, else no partition would ever have a history."""
        (topic,) = await self._both("list_topics")
        known = replace(topic, partition_count=self._random.choice((topic.partition_count, topic.partition_count - 1)))
        count = topic.partition_count + self._random.choice((-1, 0, 0, 0, 0, 1))
        grown = await self._both("grow_topic", known, count)
        if isinstance(grown, Topic):
            self._partitions = [TopicPartition(grown.topic_id, number) for number in range(grown.partition_count)]


@pytest.mark.parametrize("number", range(4))
def test_the_model_answers_as_sqlite_does(number: int) -> None:
    asyncio.run(_compare(Random(sweep_seed() * 1_000 + number)))


async def _compare(random: Random) -> None:
    clock = ManualClock()
    database = SqliteDatabase(":memory:", clock)
    await database.open()
    real = SqliteMetadataStore(database)
    try:
        topic = await real.create_topic("orders", UUID(int=1), 3, {})
        both = Both(Database([topic], clock.now_ms, lambda _change: None), real)
        driver = Driver(random, both, [TopicPartition(topic.topic_id, partition) for partition in range(3)])
        while both.calls < CALLS:
            await driver.step()
            clock.advance(random.choice((0, 0, 50, 400, TTL_MS)))
        await driver.look()
    finally:
        await real.close()
