"""Agents on one metadata store: each with its own view and assigner, and hosts that hold leases and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from log_parts.engines import FaultyMetadata
from streamhouse.cluster.assigner import Assigner
from streamhouse.cluster.membership import Membership
from streamhouse.cluster.store_watch import StorePatience, StoreWatch
from streamhouse.cluster.view import ClusterView
from streamhouse.core.placement.store_access import StoreAccess
from streamhouse.metadata.cluster import AgentInfo, Placement, Transfer
from streamhouse.metadata.groups import ShardLease
from streamhouse.metadata.sqlite.database import Database
from streamhouse.metadata.store import EpochStart, Lease, MetadataStore
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic, effective_config
from streamhouse.objects.faulty import FaultyStore
from streamhouse.objects.memory import MemoryStore
from streamhouse.runtime.clock import SystemClock
from streamhouse.testing.clock import MovableClock

TTL_MS = 30_000
HEARTBEAT_MS = 15_000
LIVENESS_MS = 60_000


def info(agent_id: str, *, zone: str = "", group: str = "default") -> AgentInfo:
    return AgentInfo(
        agent_id=agent_id,
        address=f"{agent_id}:50051",
        kafka_address=f"{agent_id}:9092",
        zone=zone,
        agent_group=group,
    )


class Partitions:
    """Holds leases; what it writes is on its own disk if it says so."""

    def __init__(self, store: MetadataStore, agent_id: str) -> None:
        self._store = store
        self._agent_id = agent_id
        self.leases: dict[TopicPartition, Lease] = {}
        self.in_local_wal = False
        self.handed_over: list[Transfer] = []
        self.problem = ""
        """Why nothing can be handed over now, if so."""
        self.tries = 0
        self.taken_over: dict[TopicPartition, int] = {}
        """The epochs that it was told transfers have made its own."""

        self.not_begun: Collection[TopicPartition] = ()
        """Those that were read, and whose epochs could not be begun."""

    @property
    def held(self) -> Collection[TopicPartition]:
        return self.leases.keys()

    @property
    def taken_up(self) -> Collection[TopicPartition]:
        return {*self.leases, *self.not_begun}

    async def lead(self, wanted: Mapping[TopicPartition, Topic], handed_over: Mapping[TopicPartition, int]) -> None:
        self.taken_over |= handed_over
        await self.take(list(wanted))

    async def take(self, partitions: Sequence[TopicPartition]) -> None:
        granted = await self._store.acquire_leases(self._agent_id, partitions, TTL_MS)
        leases = [lease for lease in granted if lease is not None]
        starts = [EpochStart(lease=lease, offset=0, in_local_wal=self.in_local_wal) for lease in leases]
        await self._store.begin_epochs(self._agent_id, starts)
        self.leases |= {lease.partition: lease for lease in leases}

    async def hand_over(self, transfers: Sequence[Transfer], looked_up_at_ms: int) -> Mapping[TopicPartition, str]:
        self.tries += 1
        if self.problem:
            return {transfer.partition: self.problem for transfer in transfers}
        completions = [(item.transfer_id, self.leases[item.partition].epoch, 0) for item in transfers]
        results = await self._store.complete_transfers(self._agent_id, completions, TTL_MS)
        for transfer, refusal in zip(transfers, results, strict=True):
            if refusal is None:
                del self.leases[transfer.partition]
                self.handed_over.append(transfer)
        return {item.partition: str(no) for item, no in zip(transfers, results, strict=True) if no is not None}

    async def let_go(self, partitions: Collection[TopicPartition]) -> None:
        found = [partition for partition in partitions if not self.in_local_wal]
        await self._store.release_leases(
            self._agent_id, [self.leases.pop(partition) for partition in found], drained=False
        )


class Shards:
    def __init__(self, store: MetadataStore, agent_id: str) -> None:
        self._store = store
        self._agent_id = agent_id
        self.leases: dict[int, ShardLease] = {}

    @property
    def held_shards(self) -> Collection[int]:
        return self.leases.keys()

    async def acquire_shards(self, shards: Sequence[int]) -> None:
        granted = await self._store.acquire_shards(self._agent_id, shards, TTL_MS)
        self.leases |= {lease.shard: lease for lease in granted if lease is not None}

    async def release_shards(self, shards: Sequence[int]) -> None:
        await self._store.release_shards(self._agent_id, [self.leases.pop(shard) for shard in shards])

    async def claim_shards(self, shards: Sequence[int], ttl_ms: int) -> None:
        await self._store.claim_shards(self._agent_id, shards, ttl_ms)


class Catalog:
    """The topics, read anew at every look."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self._topics: dict[UUID, Topic] = {}

    async def refresh(self) -> None:
        self._topics = {topic.topic_id: topic for topic in await self._store.list_topics()}

    def find_id(self, topic_id: UUID) -> Topic | None:
        return self._topics.get(topic_id)

    def config_of(self, topic: Topic) -> Mapping[str, str]:
        return effective_config(topic.config, {})


class Agent:
    """`is_observer`: it takes no part, and only looks."""

    def __init__(
        self,
        cluster: Cluster,
        about: AgentInfo,
        *,
        interval_ms: int = 3_600_000,
        is_observer: bool = False,
    ) -> None:
        store, clock = cluster.store, cluster.clock
        self.agent_id = about.agent_id
        self.nudged: list[str] = []
        self.membership = Membership(store=store, info=about, node_id=0, clock=clock, heartbeat_ms=HEARTBEAT_MS)
        self.view = ClusterView(store, clock, agent_id=about.agent_id, liveness_ms=LIVENESS_MS, lease_ttl_ms=TTL_MS)
        self.partitions = Partitions(store, about.agent_id)
        self.shards = Shards(store, about.agent_id)
        self.catalog = Catalog(store)
        self.objects = FaultyStore(cluster.objects, clock)
        self.overdue_ms = 0
        self.known: list[StoreAccess] = []
        self.store_watch = StoreWatch(
            membership=self.membership,
            view=self.view,
            objects=self.objects,
            overdue_ms=lambda: self.overdue_ms,
            known=self.known.append,
            clock=clock,
            patience=StorePatience(recovery_ms=TTL_MS),
        )
        self.assigner = Assigner(
            membership=None if is_observer else self.membership,
            store_watch=self.store_watch,
            view=self.view,
            transfers=store,
            placements=store,
            topics=self.catalog,
            partitions=self.partitions,
            shards=self.shards,
            clock=clock,
            interval_ms=interval_ms,
            nudge=lambda agent: self.nudged.append(agent.info.agent_id),
        )

    @property
    def numbers(self) -> set[int]:
        """The partitions that it holds, of whichever topic."""
        return {partition.partition for partition in self.partitions.held}

    async def look(self) -> None:
        await self.assigner.look_now()

    async def keep_leases(self) -> None:
        """Take all that it holds anew, also if it has run out; nothing here renews by itself."""
        await self.partitions.take(list(self.partitions.held))
        await self.shards.acquire_shards(list(self.shards.held_shards))


class Cluster:
    def __init__(self, store: FaultyMetadata, clock: MovableClock) -> None:
        self.store = store
        self.clock = clock
        self.objects = MemoryStore(clock)
        self.agents: list[Agent] = []

    async def join(
        self, agent_id: str, *, zone: str = "", group: str = "default", interval_ms: int = 3_600_000
    ) -> Agent:
        """Registered, but it has not looked yet."""
        agent = Agent(self, info(agent_id, zone=zone, group=group), interval_ms=interval_ms)
        await agent.membership.register()
        self.agents.append(agent)
        return agent

    async def topic(self, partitions: int = 12, **config: str) -> Topic:
        named = {f"streamhouse.{key.replace('_', '.')}": value for key, value in config.items()}
        return await self.store.create_topic("orders", uuid4(), partitions, named)

    async def settle(self, rounds: int = 6) -> None:
        """Everybody looks, again and again, until nothing is left to do."""
        for _ in range(rounds):
            for agent in self.agents:
                await agent.look()

    async def placements(self) -> list[Placement]:
        return await self.store.list_placements()


class StillClock(MovableClock):
    """Stands still until a test lets time pass, however long the machine takes. Whoever sleeps does so in real time."""

    def __init__(self) -> None:
        super().__init__()
        self._began_at_ms, self._monotonic_began_at_ms = SystemClock().now_ms(), SystemClock().monotonic_ms()

    def now_ms(self) -> int:
        return self._began_at_ms + self._wall_shift_ms

    def monotonic_ms(self) -> int:
        return self._monotonic_began_at_ms + self._monotonic_shift_ms

    async def sleep_ms(self, duration_ms: float) -> None:
        await SystemClock.sleep_ms(self, duration_ms)


@asynccontextmanager
async def a_cluster(clock: MovableClock | None = None) -> AsyncIterator[Cluster]:
    """With a clock that stands still, unless another is given."""
    clock = clock or StillClock()
    database = Database(":memory:", clock)
    await database.open()
    cluster = Cluster(FaultyMetadata(database), clock)
    try:
        yield cluster
    finally:
        for agent in cluster.agents:
            await agent.assigner.stop()
        await cluster.store.close()
