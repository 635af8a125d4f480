"""A node with real storage behind a gRPC port, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from log_parts.engines import AGENT, Running, bench
from streamhouse.broker.activity import Activity, node_wal
from streamhouse.broker.broker import Broker, Identity
from streamhouse.broker.local_peer import LocalPeer
from streamhouse.broker.measures import door_measures
from streamhouse.log.leader import PartitionLeader
from streamhouse.model.names import TopicPartition
from streamhouse.model.settings import Settings
from streamhouse.model.topic import Topic


@dataclass
class StoringNode:
    """It leads the topic `orders`, which has two partitions."""

    running: Running
    topic: Topic
    nudges: int = 0
    local: LocalPeer = field(init=False)

    def __post_init__(self) -> None:
        bench = self.running.bench
        broker = Broker(
            settings=Settings(),
            identity=Identity(cluster_id="cluster", node_id=1, agent_id=AGENT),
            clock=bench.clock,
            metadata=bench.metadata,
            engine=self.running.engine,
            topics=self.running.topics,
            groups=None,  # type: ignore[arg-type]
            nodes=None,  # type: ignore[arg-type] # not asked
            configs=None,  # type: ignore[arg-type]
        )
        self.local = LocalPeer(
            broker,
            flush=self.running.engine.uploader.flush,
            nudge_transfers=self._nudged,
            work=Activity(broker, door_measures()).now,
            wal=lambda: node_wal(broker),
        )

    def _nudged(self) -> None:
        self.nudges += 1

    @property
    def leader(self) -> PartitionLeader:
        return self.running.leader("orders", 1)

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic.topic_id, 1)


@asynccontextmanager
async def storing_node(wal_directory: Path | None = None, **settings: Any) -> AsyncIterator[StoringNode]:
    async with bench(wal_directory) as shared, shared.engine(**settings) as running:
        yield StoringNode(running, await running.create("orders", 2))
