"""What runs in an agent's process: the real log and cluster code, put together as `app` does it, on models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

from sim.cluster.disk import Disk, ModelWal
from sim.cluster.services import BucketClient, DatabaseClient
from streamhouse.broker.fetch import Fetcher, PartitionRead
from streamhouse.cluster.assigner import Assigner
from streamhouse.cluster.membership import Membership
from streamhouse.cluster.store_watch import StorePatience, StoreWatch
from streamhouse.cluster.view import ClusterView
from streamhouse.format.batch import check_produced
from streamhouse.log.engine import LogEngine
from streamhouse.log.leader import PartitionLeader
from streamhouse.log.recovery import Recovered
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.model.errors import NotLeader, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.model.topic import LogConfig, Topic, effective_config, parse_log_config
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.tasks import TaskGroup

SETTINGS = Settings(
    lease_ttl=1_000,
    lease_renewal=330,
    heartbeat=400,
    liveness=2_000,
    rebalance=1_300,
    segment_age=1_000,
    shutdown_timeout=5_000,
)
STORE_PATIENCE = StorePatience(
    look_ms=50, last_probe_ms=50, suspect_ms=150, stalled_ms=400, probe_ms=300, again_ms=200, recovery_ms=1_000
)
_FETCH_BYTES = 4_096

Reply = Callable[[object], None]


class Catalog:
    """The topics, as the assigner asks for them."""

    def __init__(self, database: DatabaseClient, segment_bytes: int) -> None:
        self._database = database
        self._segment_bytes = segment_bytes
        self._topics: dict[UUID, Topic] = {}
        self._configs: dict[str, Mapping[str, str]] = {}

    async def refresh(self) -> None:
        """No topic is made or deleted here, but they grow."""
        self._topics = {topic.topic_id: topic for topic in await self._database.list_topics()}

    def find_id(self, topic_id: UUID) -> Topic | None:
        return self._topics.get(topic_id)

    def config_of(self, topic: Topic) -> Mapping[str, str]:
        if topic.name not in self._configs:
            self._configs[topic.name] = effective_config(topic.config, {})
        return self._configs[topic.name]

    def log_config_of(self, topic: Topic) -> LogConfig:
        config = parse_log_config(self.config_of(topic))
        limits = {"segment_bytes": self._segment_bytes, "segment_age_ms": SETTINGS.segment_age, "retention_ms": -1}
        return replace(config, **limits)

    def __iter__(self) -> Any:
        return iter(self._topics.values())


class NoShards:
    """Group coordinators have a simulation of their own."""

    held_shards: tuple[int, ...] = ()

    async def acquire_shards(self, shards: object) -> None:
        return

    async def release_shards(self, shards: object) -> None:
        return

    async def claim_shards(self, shards: object, ttl_ms: int) -> None:
        return


class ModelDirectory:
    """Where the WAL's files are looked for."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def glob(self, pattern: str) -> list[Path]:
        return [Path(pattern.replace("*", str(number))) for number in range(len(self._disk.files))]

    def __truediv__(self, name: str) -> Path:
        """Nowhere: this disk loses none of its files, so there is no note of which there should be."""
        return Path("no such directory", name)

    def __str__(self) -> str:
        return "the model disk"


class ModelEngine(LogEngine):
    """The real engine, with its local WAL on a model disk."""

    def __init__(self, disk: Disk, wal: ModelWal, **parts: Any) -> None:
        super().__init__(wal_directory=None, **parts)
        self._disk = disk
        self._wal_directory = ModelDirectory(disk)  # type: ignore[assignment]
        self.wals.local = wal
        self.wals.local_survives = True

    def _replay_files(self, directory: Path) -> Recovered:
        for file in self._disk.files:
            file.pins.clear()
            for entry, batch in file.entries:
                self._replay(entry, memoryview(batch), file)  # type: ignore[arg-type]
        return Recovered(self._disk.files, 0)  # type: ignore[arg-type]


class Node:
    """What `app.Node` builds and starts, without listeners and groups."""

    def __init__(
        self,
        *,
        agent_id: str,
        disk: Disk,
        wal: ModelWal,
        clock: Clock,
        database: DatabaseClient,
        bucket: BucketClient,
        segment_bytes: int,
    ) -> None:
        self.database = database
        self._topics = Catalog(database, segment_bytes)
        self.engine = ModelEngine(
            disk,
            wal,
            settings=SETTINGS,
            agent_id=agent_id,
            metadata=self.database,  # type: ignore[arg-type]
            objects=bucket,  # type: ignore[arg-type]
            clock=clock,
            config_of=self._topics.log_config_of,
            lost=lambda: self._assigner.wake(),
        )
        self._fetcher = Fetcher(self.engine.reader)
        self._membership = Membership(
            store=self.database,  # type: ignore[arg-type]
            info=AgentInfo(
                agent_id=agent_id, address="", kafka_address=f"{agent_id}:1", zone="", agent_group="default"
            ),
            node_id=0,
            clock=clock,
            heartbeat_ms=SETTINGS.heartbeat,
        )
        self._view = ClusterView(
            self.database,  # type: ignore[arg-type]
            clock,
            agent_id=agent_id,
            liveness_ms=SETTINGS.liveness,
            lease_ttl_ms=SETTINGS.lease_ttl,
        )
        self._store_watch = StoreWatch(
            membership=self._membership,
            view=self._view,
            objects=bucket,  # type: ignore[arg-type]
            overdue_ms=self.engine.store_overdue_ms,
            known=self.engine.heed_store_access,
            clock=clock,
            patience=STORE_PATIENCE,
        )
        self._assigner = Assigner(
            membership=self._membership,
            view=self._view,
            store_watch=self._store_watch,
            transfers=self.database,  # type: ignore[arg-type]
            placements=self.database,  # type: ignore[arg-type]
            topics=self._topics,
            partitions=self.engine,
            shards=NoShards(),
            clock=clock,
            interval_ms=SETTINGS.rebalance,
        )
        self._heartbeats = TaskGroup("heartbeats")
        self._requests = TaskGroup("requests")
        self.is_serving = False

    @property
    def leaders(self) -> Mapping[TopicPartition, PartitionLeader]:
        return self.engine.leadership.leaders

    async def start(self) -> None:
        await self._topics.refresh()
        await self.engine.start(self._topics)
        await self._membership.register()
        self._heartbeats.start(self._membership.keep_alive(), "heartbeat")
        self._heartbeats.start(self._store_watch.run(), "store")
        self.database.subscribe(self._assigner.wake)
        await self._assigner.start()
        self.is_serving = True

    async def drain(self) -> None:
        await self._assigner.drain(SETTINGS.shutdown_timeout)
        await self._assigner.stop()
        self.is_serving = False
        await self.engine.stop()
        await self._heartbeats.cancel()
        await self._membership.deregister()

    def produce(self, partition: TopicPartition, batch: bytes, reply: Reply) -> None:
        """Replies with the base offset, or with what refused it: NotLeader and the like, or `Failed` when it may be
        stored all the same."""
        leader = self.leaders.get(partition)
        if leader is None or not self.is_serving:
            reply(NotLeader("not here"))
            return
        acknowledgement = Acknowledgement(reply)
        view = memoryview(bytearray(batch))
        try:
            base_offset, _ = leader.append(view, check_produced(view), acknowledgement)
        except StreamHouseError as problem:
            reply(problem)
            return
        acknowledgement.stored_at(base_offset)
        self.engine.commit_appends()

    def fetch(self, partition: TopicPartition, offset: int, reply: Reply) -> None:
        """Replies with a `Fetched`, or with what refused it."""
        leader = self.leaders.get(partition)
        if leader is None or not self.is_serving:
            reply(NotLeader("not here"))
            return
        self._requests.start(self._fetch(leader, offset, reply), "fetch")

    async def _fetch(self, leader: PartitionLeader, offset: int, reply: Reply) -> None:
        read = PartitionRead(leader, offset, _FETCH_BYTES)
        await self._fetcher.read([read], _FETCH_BYTES)
        # The epoch is read together with the high watermark, as a response is built.
        reply(read.problem or (leader, leader.epoch, leader.high_watermark, [bytes(part) for part in read.parts]))


class Failed(Exception):
    """The append was not acknowledged, and may or may not be stored."""


class Acknowledgement:
    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._base_offset = -1
        self._is_durable = False

    def stored_at(self, base_offset: int) -> None:
        self._base_offset = base_offset
        if self._is_durable:
            self._reply(base_offset)

    def durable(self) -> None:
        self._is_durable = True
        if self._base_offset >= 0:
            self._reply(self._base_offset)

    def failed(self, problem: StreamHouseError) -> None:
        self._reply(Failed(str(problem)))
