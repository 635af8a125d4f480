"""The composition root: builds a node from its settings, starts it, and stops it in reverse."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import quote

import uvloop

from streamhouse.broker.broker import Broker, Identity
from streamhouse.broker.topics import Topics
from streamhouse.core.groups.classic_messages import ClassicLimits
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits
from streamhouse.core.groups.consumer_target import TopicShape
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.log.data_directory import DataDirectory
from streamhouse.log.engine import LogEngine
from streamhouse.metadata.open import open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.names import check_agent_id
from streamhouse.model.settings import Settings
from streamhouse.model.topic import LogConfig, Topic, effective_config, parse_log_config
from streamhouse.objects.open import open_store
from streamhouse.objects.s3 import S3Options
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.server.kafka.listener import KafkaListener

_log = logging.getLogger(__name__)


class Node:
    """A running node. `clock`, `metadata` and `objects` can be handed in, which is how tests inject faults."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        metadata: MetadataStore | None = None,
        objects: ObjectStore | None = None,
        durable: bool = True,
    ) -> None:
        self.settings = settings
        self._clock = clock or SystemClock()
        self._metadata = metadata
        self._objects = objects
        self._durable = durable
        self._stack = AsyncExitStack()
        self.engine: LogEngine
        self.broker: Broker
        self.kafka: KafkaListener

    async def start(self) -> None:
        """Recover, lead, listen. What was started is stopped again if a later step fails."""
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise

    async def _start(self) -> None:
        settings = self.settings
        directory: DataDirectory | None = None
        if self._durable:
            directory = DataDirectory(Path(settings.data_dir))
            self._stack.callback(directory.close)
        metadata = self._metadata or await self._open_metadata(settings)
        objects = self._objects or await self._open_objects(settings)
        agent_id = check_agent_id(settings.agent_id or (directory.agent_id() if directory else "agent-memory"))
        self.engine = LogEngine(
            settings=settings,
            agent_id=agent_id,
            wal_directory=directory.wal if directory else None,
            metadata=metadata,
            objects=objects,
            clock=self._clock,
            config_of=self._log_config,
        )
        self._stack.push_async_callback(self.engine.abort)
        topics: Topics
        groups = GroupCoordinator(
            agent_id=agent_id,
            store=metadata,
            clock=self._clock,
            topics=lambda: {topic.name: TopicShape(topic.topic_id, topic.partition_count) for topic in topics},
            lease_ttl_ms=settings.lease_ttl,
            lease_renewal_ms=settings.lease_renewal,
            offsets_retention_ms=settings.offsets_retention,
            classic_limits=ClassicLimits(
                initial_rebalance_delay_ms=settings.group_initial_rebalance_delay, max_size=settings.group_max_size
            ),
            consumer_limits=ConsumerLimits(
                session_timeout_ms=settings.group_consumer_session_timeout,
                heartbeat_interval_ms=settings.group_consumer_heartbeat_interval,
                max_size=settings.group_max_size,
            ),
        )
        topics = Topics(
            store=metadata,
            engine=self.engine,
            node_defaults=node_defaults(settings),
            default_partitions=settings.default_partitions,
            changed=groups.topics_changed,
        )
        existing = await metadata.list_topics()
        await self.engine.start(existing)
        topics.opened(existing)
        self._stack.push_async_callback(groups.abort)
        await groups.start()
        self._groups = groups
        self.broker = Broker(
            settings=settings,
            identity=Identity(cluster_id=await metadata.cluster_id(), node_id=settings.node_id, agent_id=agent_id),
            clock=self._clock,
            metadata=metadata,
            engine=self.engine,
            topics=topics,
            groups=groups,
        )
        self.kafka = KafkaListener(self.broker)
        await self.kafka.start()

    async def drain(self) -> None:
        """Stop accepting, finish what was received, flush to the object store, end."""
        await self._groups.stop()
        await self.kafka.drain()
        await self.engine.stop()
        await self._stack.aclose()

    async def kill(self) -> None:
        """End as a crash would, with nothing finished or flushed."""
        await self.kafka.close()
        await self._stack.aclose()

    async def _open_metadata(self, settings: Settings) -> MetadataStore:
        url = settings.metadata or f"sqlite:{quote(settings.data_dir)}/metadata.db"
        metadata = await open_metadata(url, self._clock)
        self._stack.push_async_callback(metadata.close)
        return metadata

    async def _open_objects(self, settings: Settings) -> ObjectStore:
        url = settings.objects or f"file:{quote(settings.data_dir)}/objects"
        objects = await open_store(url, self._clock, s3_options(settings))
        self._stack.push_async_callback(objects.close)
        return objects

    def _log_config(self, topic: Topic) -> LogConfig:
        return parse_log_config(effective_config(topic.config, node_defaults(self.settings)))


def node_defaults(settings: Settings) -> dict[str, str]:
    """The topic configs that are settings of the node."""
    return {
        "max.message.bytes": str(settings.max_message_bytes),
        "retention.ms": str(settings.retention_ms),
        "segment.bytes": str(settings.segment_bytes),
        "segment.ms": str(settings.segment_age),
    }


def s3_options(settings: Settings) -> S3Options:
    return S3Options(
        endpoint=settings.s3_endpoint,
        region=settings.s3_region or "us-east-1",
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key,
        session_token=settings.s3_session_token,
        path_style=settings.s3_path_style,
    )


def serve(settings: Settings, announce: Callable[[str], None]) -> int:
    """Run a node until SIGTERM or SIGINT; blocking."""
    logging.basicConfig(
        level=settings.log_level.upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    return uvloop.run(_serve(settings, announce))


async def _serve(settings: Settings, announce: Callable[[str], None]) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    node = Node(settings)
    await node.start()
    announce(f"ready kafka={node.kafka.address}")
    await stop.wait()
    _log.info("draining")
    await node.drain()
    return 0
