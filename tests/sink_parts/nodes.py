"""Nodes that adopt into one log, each of which can die in the middle of it, and what is in the log then."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from log_parts.engines import Bench
from log_parts.waiting import HUNG_SECONDS
from peers.node import StoringNode, storing_node
from streamhouse.broker.adoption import Adoption
from streamhouse.broker.sink_upkeep import SinkUpkeep
from streamhouse.format.records import decode_records
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import OutcomeUnknown, Unavailable
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic
from streamhouse.runtime.clock import SystemClock

GARBAGE_GRACE_MS = 60_000


@dataclass
class Leaders:
    """The way from a node to the leaders. It breaks after so many batches, with the last one stored or not; `chance`
    makes batches overtake one another, and answers get lost, on the way."""

    node: StoringNode
    breaks_after: int | None = None
    stores_last: bool = False
    chance: random.Random | None = None
    lost_answers: float = 0.0
    sent: int = 0

    async def produce(self, topic: Topic, partition: int, batch: Buffer, *, is_admitted: bool) -> object:
        if self.chance is not None:
            await SystemClock().sleep_ms(self.chance.choice((0, 0, 1, 3)))
        self.sent += 1
        is_broken = self.breaks_after is not None and self.sent > self.breaks_after
        if is_broken and not (self.stores_last and self.sent == (self.breaks_after or 0) + 1):
            raise Unavailable("the node is dead")
        produced = await self.node.local.produce(
            TopicPartition(topic.topic_id, partition), batch, is_admitted=is_admitted, timeout_ms=20_000
        )
        if is_broken or (self.chance is not None and self.chance.random() < self.lost_answers):
            raise OutcomeUnknown("nobody heard the answer")
        return produced


@dataclass
class Adopting:
    """A cluster: one agent leads `orders`, which has two partitions, and any number of nodes adopt."""

    storing: StoringNode
    adoptions: list[Adoption] = field(default_factory=list)

    @property
    def bench(self) -> Bench:
        return self.storing.running.bench

    def node(self, leaders: Leaders | None = None) -> Adoption:
        adoption = Adoption(
            sinks=self.bench.metadata,
            objects=self.bench.objects,
            topics=self.storing.running.topics,
            leaders=leaders or Leaders(self.storing),
            clock=self.bench.clock,
        )
        self.adoptions.append(adoption)
        return adoption

    def upkeep(self, adoption: Adoption) -> SinkUpkeep:
        return SinkUpkeep(
            adoption=adoption,
            sinks=self.bench.metadata,
            objects=self.bench.objects,
            clock=self.bench.clock,
            garbage_grace_ms=GARBAGE_GRACE_MS,
        )

    async def values(self, partition: int = 0, topic: str = "orders") -> list[bytes | None]:
        """All that a consumer reads, in order."""
        return [record.value for record in decode_records(await self.storing.running.read(topic, partition))]

    async def staged(self) -> list[str]:
        return [key for key in await self.bench.keys() if key.startswith("staging/")]

    async def until_staged(self, count: int) -> None:
        """Until so many objects are left."""
        deadline = asyncio.get_running_loop().time() + HUNG_SECONDS
        while len(left := await self.staged()) != count:
            assert asyncio.get_running_loop().time() < deadline, left
            await asyncio.sleep(0.01)


@asynccontextmanager
async def adopting() -> AsyncIterator[Adopting]:
    async with storing_node() as storing:
        cluster = Adopting(storing)
        try:
            yield cluster
        finally:
            for adoption in cluster.adoptions:
                await adoption.close()
