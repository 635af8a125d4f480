"""A storage engine on a metadata store and an object store that can be made to fail, and its topics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from log_parts.batches import header_of
from log_parts.leaders import Ack
from log_parts.waiting import HUNG_SECONDS, until
from streamhouse.app.options import node_defaults
from streamhouse.broker.topics import Topics
from streamhouse.log.engine import LogEngine
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.sqlite.store import SqliteMetadataStore
from streamhouse.model.errors import MetadataUnavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.model.topic import Topic
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.testing.clock import MovableClock

T = TypeVar("T")
AGENT = "agent-1"
_NOT_FAULTY = ("fail", "hold", "heal", "calls", "close", "subscribe")


class HeldCall:
    """The next call of a method, stopped at the door until it is let through."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._released = asyncio.Event()

    def release(self) -> None:
        self._released.set()

    async def wait(self) -> None:
        self.reached.set()
        await self._released.wait()


class FaultyMetadata(SqliteMetadataStore):
    """A SQLite store whose calls can be held up, or made to fail, by name, before or after they took effect."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._faults: dict[str, list[tuple[bool, Exception]]] = {}
        self._held: dict[str, HeldCall] = {}
        self.calls: list[str] = []

    def fail(
        self, method: str, *, after: int = 0, times: int = 1, lost_answer: bool = False, error: Exception | None = None
    ) -> None:
        """So many calls of the method, `after` so many that succeed."""
        problem = error or MetadataUnavailable("injected fault")
        self._faults.setdefault(method, []).extend([None] * after + [(lost_answer, problem)] * times)

    def hold(self, method: str) -> HeldCall:
        self._held[method] = held = HeldCall()
        return held

    def heal(self) -> None:
        self._faults.clear()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or name in _NOT_FAULTY or not callable(found):
            return found
        faults = super().__getattribute__("_faults")
        held = super().__getattribute__("_held")
        calls = super().__getattribute__("calls")

        async def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            if name in held:
                await held.pop(name).wait()
            waiting = faults.get(name)
            if not waiting:
                return await found(*args, **options)
            fault = waiting.pop(0)
            if fault is None:
                return await found(*args, **options)
            lost_answer, problem = fault
            if lost_answer:
                await found(*args, **options)
            raise problem

        return call


class Bench:
    """Stores that outlive the engines on them, as a machine's do."""

    def __init__(self, metadata: FaultyMetadata, clock: MovableClock, wal_directory: Path | None) -> None:
        self.clock = clock
        self.metadata = metadata
        self.inner = MemoryStore(clock)
        self.objects = FaultyStore(self.inner, clock)
        self.wal_directory = wal_directory

    async def keys(self) -> list[str]:
        return [item.key async for item in self.inner.list("")]

    @asynccontextmanager
    async def engine(self, agent_id: str = AGENT, **settings: Any) -> AsyncIterator[Running]:
        """Started, and killed at the end unless it was stopped."""
        running = self.unstarted(agent_id, **settings)
        existing = await self.metadata.list_topics()
        try:
            running.topics.opened(existing)
            await running.engine.start(existing)
            await running.place()
            yield running
        finally:
            await running.engine.abort()

    def unstarted(self, agent_id: str = AGENT, **settings: Any) -> Running:
        return Running(self, Settings(**({"wal_file_bytes": 2**20} | settings)), agent_id)


class Running:
    def __init__(self, bench: Bench, settings: Settings, agent_id: str) -> None:
        self.bench = bench
        defaults = node_defaults(settings)
        if bench.wal_directory is not None:
            bench.wal_directory.mkdir(exist_ok=True)
        self.engine = LogEngine(
            settings=settings,
            agent_id=agent_id,
            wal_directory=bench.wal_directory,
            metadata=bench.metadata,
            objects=bench.objects,
            clock=bench.clock,
            config_of=lambda topic: self.topics.log_config_of(topic),
        )
        self.topics = Topics(
            store=bench.metadata,
            engine=self.engine,
            node_defaults=defaults,
            default_partitions=1,
            place=self.place,
        )

    async def place(self) -> None:
        """Lead everything: there is no other agent."""
        await self.engine.lead(
            {
                TopicPartition(topic.topic_id, partition): topic
                for topic in self.topics
                for partition in range(topic.partition_count)
            }
        )

    async def create(self, name: str = "orders", partitions: int = 1, **config: str) -> Topic:
        named = {key.replace("_", "."): value for key, value in config.items()}
        return await self.topics.create(name, partitions, named)

    def leader(self, name: str = "orders", partition: int = 0) -> PartitionLeader:
        return self.topics.leader(self.topics.get(name), partition)

    def append(self, produced: memoryview, leader: PartitionLeader | None = None) -> Ack:
        """Append without waiting."""
        ack = Ack()
        (leader or self.leader()).append(produced, header_of(produced), ack)
        return ack

    async def produce(self, *produced: memoryview, leader: PartitionLeader | None = None) -> None:
        """Append and wait until it is durable."""
        acks = [self.append(batch, leader) for batch in produced]
        self.engine.commit_appends()
        await until(lambda: all(ack.heard for ack in acks), "the batches are settled")
        assert all(ack.is_durable for ack in acks), [ack.heard for ack in acks]

    async def read(self, name: str = "orders", partition: int = 0) -> bytes:
        """All that a consumer would read, from segments and memory."""
        leader = self.leader(name, partition)
        content = b""
        offset = leader.log_start_offset
        if offset < leader.tail.start_offset:
            content = b"".join(await self.engine.reader.read(leader, offset, 2**31))
            offset = leader.committed_end
        content += b"".join(leader.tail.read(max(offset, leader.tail.start_offset), leader.high_watermark, 2**31))
        return content


@asynccontextmanager
async def bench(wal_directory: Path | None = None) -> AsyncIterator[Bench]:
    clock = MovableClock()
    database = Database(":memory:", clock)
    await database.open()
    metadata = FaultyMetadata(database)
    try:
        yield Bench(metadata, clock, wal_directory)
    finally:
        await metadata.close()


async def finishes(work: Awaitable[T], what: str, *, timeout: float = HUNG_SECONDS) -> T:
    """The result, or an assertion that it hangs."""
    try:
        async with asyncio.timeout(timeout):
            return await work
    except TimeoutError:
        raise AssertionError(f"hangs: {what}") from None
