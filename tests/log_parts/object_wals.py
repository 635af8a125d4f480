"""An object WAL on stores that can be held up and made to fail, with owners that remember what they were told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from math import ceil
from typing import Any

from format_samples.batches import batch
from log_parts.batches import EPOCH
from log_parts.leaders import TOPIC_ID
from log_parts.waiting import until
from log_parts.wal_objects import MemoryWalObjects
from services.clock import ManualClock
from streamhouse.format.batch import place
from streamhouse.format.wal_entry import entry_prefix
from streamhouse.format.wal_object import decode_wal_object
from streamhouse.log.object_wal import ObjectWal
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_replay import replay_wal_objects
from streamhouse.model.errors import NotLeader, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.runtime.clock import Clock

AGENT = "agent-1"
GRACE_MS = 3_600_000
_numbers = count(1)


class SteppedClock(ManualClock):
    """Who sleeps on it wakes when the test has moved it far enough."""

    def __init__(self) -> None:
        super().__init__()
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    @property
    def sleepers(self) -> int:
        return sum(not sleeper.done() for _, sleeper in self._sleepers)

    async def sleep_ms(self, duration_ms: float) -> None:
        self.slept_ms.append(duration_ms)
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.monotonic_ms() + duration_ms, sleeper))
        await sleeper

    async def pass_time(self, duration_ms: int) -> None:
        """Everybody wakes at their own time, and does all that they do before the next one wakes."""
        end_ms = self.monotonic_ms() + duration_ms
        await quiet()
        while due := [entry for entry in self._sleepers if entry[0] <= end_ms and not entry[1].done()]:
            wakes_at_ms, sleeper = min(due, key=lambda entry: entry[0])
            self.advance(max(0, ceil(wakes_at_ms) - self.monotonic_ms()))
            sleeper.set_result(None)
            await quiet()
        self._sleepers = [entry for entry in self._sleepers if not entry[1].done()]
        self.advance(end_ms - self.monotonic_ms())


async def quiet() -> None:
    """Until everything that can happen without time passing has happened: nothing here waits for a real device."""
    for _ in range(20):
        await asyncio.sleep(0)


class Owner:
    """A partition as the WAL knows it. It refuses to hear of anything durable that the metadata store does not have."""

    def __init__(self, store: MemoryWalObjects, partition: int, epoch: int) -> None:
        self._store = store
        self.partition = TopicPartition(TOPIC_ID, partition)
        self.epoch = epoch
        self.wal_prefix = entry_prefix(TOPIC_ID, partition)
        self.next_offset = 0
        self.appended: list[bytes] = []
        self.heard: list[int | StreamHouseError] = []

    @property
    def durable_end(self) -> int:
        return max((item for item in self.heard if isinstance(item, int)), default=0)

    @property
    def problems(self) -> list[StreamHouseError]:
        return [item for item in self.heard if isinstance(item, StreamHouseError)]

    def append(self, wal: ObjectWal, size_bytes: int = 100, *, records: int = 1) -> None:
        filling = (next(_numbers).to_bytes(4, "big") * size_bytes)[: size_bytes - 61]
        made = memoryview(bytearray(batch(count=records, records=filling)))
        place(made, 0, self.next_offset, self.epoch)
        self.next_offset += records
        self.appended.append(bytes(made))
        wal.append(self, made, self.next_offset)

    def durable(self, end_offset: int) -> None:
        assert end_offset > self.durable_end, "what is durable is reported once"
        assert end_offset <= self._store.durable_ends[self.partition], "acknowledged before it was committed"
        self.heard.append(end_offset)

    def not_durable(self, problem: StreamHouseError) -> None:
        self.heard.append(problem)


class Bench:
    def __init__(self, clock: Clock, **options: Any) -> None:
        self.clock = clock
        self.inner = MemoryStore(clock)
        self.objects = FaultyStore(self.inner, clock)
        self.store = MemoryWalObjects()
        self.fenced: list[WalOwner] = []
        self.wal = ObjectWal(
            agent_id=AGENT,
            objects=self.objects,
            store=self.store,
            clock=clock,
            fenced=self._on_fenced,
            **({"garbage_grace_ms": GRACE_MS} | options),
        )

    def _on_fenced(self, owner: WalOwner, problem: NotLeader) -> None:
        assert isinstance(problem, NotLeader)
        self.fenced.append(owner)

    def owner(self, partition: int = 0, *, epoch: int = EPOCH) -> Owner:
        """With the lease."""
        owner = Owner(self.store, partition, epoch)
        self.store.grant(owner.partition, AGENT, epoch)
        return owner

    async def until_durable(self, *owners: Owner) -> None:
        await until(lambda: all(owner.durable_end == owner.next_offset for owner in owners), "all is durable")

    async def keys(self) -> list[str]:
        return [item.key async for item in self.inner.list("wal/")]

    async def object_sizes(self) -> list[int]:
        """How many batches each object holds, oldest first; each must be sound."""
        return [
            sum(len(batches) for _, batches in decode_wal_object(await self.inner.get(key)))
            for key in await self.keys()
        ]

    async def replayed(self, owner: Owner) -> list[bytes]:
        """What a successor would read."""
        (ranges,) = await self.store.load_wal_ranges([owner.partition])
        return [bytes(item) async for items in replay_wal_objects(self.inner, ranges) for item in items]


@asynccontextmanager
async def stepped(**options: Any) -> AsyncIterator[tuple[Bench, SteppedClock]]:
    """A WAL whose time is in the test's hands."""
    clock = SteppedClock()
    bench = Bench(clock, **({"close_timeout_ms": 20} | options))
    try:
        yield bench, clock
    finally:
        await bench.wal.close()


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Bench]:
    """A WAL on which all waiting is over at once."""
    bench = Bench(ManualClock(), **({"close_timeout_ms": 20} | options))
    try:
        yield bench
    finally:
        bench.objects.heal()
        bench.store.gate.set()
        await bench.wal.close()
