"""A node: built from its settings, started, and stopped in reverse."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

from streamhouse.app.doors import Door, Doors
from streamhouse.app.options import (
    given_defaults,
    group_defaults,
    is_sent_in_the_clear,
    is_shared,
    metadata_url,
    node_defaults,
    objects_url,
    s3_options,
)
from streamhouse.app.storage_watch import StorageWatch
from streamhouse.broker.activity import Activity, node_wal
from streamhouse.broker.broker import NOT_A_NODE, Broker, Identity
from streamhouse.broker.cluster_work import ClusterWork
from streamhouse.broker.dynamic_configs import DynamicConfigs
from streamhouse.broker.forwarding import Forwarder
from streamhouse.broker.led_durability import LedDurability
from streamhouse.broker.local_peer import LocalPeer
from streamhouse.broker.measures import door_measures
from streamhouse.broker.nodes import Nodes
from streamhouse.broker.planning import Planner
from streamhouse.broker.records import RecordDoor
from streamhouse.broker.topic_descriptors import TopicDescriptors
from streamhouse.broker.topics import Topics
from streamhouse.client.address import Address, parse_bootstrap
from streamhouse.client.peer import Peers, RemotePeer
from streamhouse.cluster.assigner import Assigner
from streamhouse.cluster.first_leaders import FirstLeaders
from streamhouse.cluster.membership import Membership
from streamhouse.cluster.store_watch import StorePatience, StoreWatch
from streamhouse.cluster.view import ClusterView
from streamhouse.core.groups.classic_messages import ClassicLimits
from streamhouse.core.groups.consumer_heartbeat import ConsumerLimits
from streamhouse.core.groups.consumer_target import TopicShape
from streamhouse.core.groups.group_kind import MigrationPolicy
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.log.data_directory import DataDirectory
from streamhouse.log.engine import LogEngine
from streamhouse.log.leader import PartitionLeader
from streamhouse.metadata.cluster import AgentInfo
from streamhouse.metadata.configs import ConfigKind, Configured
from streamhouse.metadata.open import metadata_file, open_metadata
from streamhouse.metadata.store import MetadataStore
from streamhouse.model.errors import StorageUnavailable, StreamHouseError
from streamhouse.model.names import TopicPartition, check_agent_id
from streamhouse.model.settings import Settings
from streamhouse.model.topic import LEAST_SEGMENT_BYTES, LogConfig, Topic
from streamhouse.objects.measured import MeasuredStore, measured
from streamhouse.objects.open import objects_directory, open_store
from streamhouse.objects.store import ObjectStore
from streamhouse.runtime.clock import Clock, SystemClock
from streamhouse.runtime.loop_delay import watch_loop
from streamhouse.runtime.measures import Histogram
from streamhouse.runtime.tasks import TaskGroup
from streamhouse.runtime.tracing import open_tracing
from streamhouse.server.doors import DoorContext
from streamhouse.server.kafka.embedded_protocol import KafkaEmbeddedProtocol
from streamhouse.server.kafka.listener import KafkaListener, KafkaPort, bind_kafka_port
from streamhouse.server.metrics.node import NodeMeasures
from streamhouse.spark.pipelines.registry import Registry, state_directory

_log = logging.getLogger(__name__)
_LINGER_MS = 500
_HAND_OVER_SHARE = 0.75
"""Of the time that a stop may take; what nobody takes over by then needs the rest to be flushed."""
_LEAST_FLUSH_MS = 1_000


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
        is_agent: bool = True,
        opens: Collection[Door] = (),
        least_segment_bytes: int = LEAST_SEGMENT_BYTES,
        given: Collection[str] = (),
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """`is_agent`: it leads partitions and coordinates groups; else it only tells clients who does. `opens`: what it
        listens on besides Kafka's port. `given`: the settings that a flag or a variable has set. `failed` is called
        when the node cannot go on and should be drained."""
        self.settings = settings
        self._clock = clock or SystemClock()
        self._metadata = metadata
        self._objects = objects
        self._durable = durable and is_agent
        self._is_agent = is_agent
        self._least_segment_bytes = least_segment_bytes
        self._given = given
        self._failed = failed
        self.doors = Doors(settings, opens)
        self._stack = AsyncExitStack()
        self._heartbeats = TaskGroup("heartbeats")
        self._watching = TaskGroup("watching")
        self._door_measures = door_measures()
        self._loop_delay_seconds = Histogram()
        self._store: MeasuredStore
        self._storage_watch: StorageWatch | None = None
        self._membership: Membership | None = None
        self._store_watch: StoreWatch | None = None
        self._descriptors: TopicDescriptors
        self._configs: DynamicConfigs
        self._topics: Topics
        self._groups: GroupCoordinator
        self._view: ClusterView
        self._assigner: Assigner
        self._activity: Activity
        self._local: LocalPeer
        self._peers = Peers(self._connect_peer)
        self._context: DoorContext
        self.forwarder: Forwarder
        self.engine: LogEngine
        self.broker: Broker
        self.kafka: KafkaListener

    # --- starting ---

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
        self._store = objects = measured(self._objects or await self._open_objects(settings))
        self._watching.keep(lambda: watch_loop(self._loop_delay_seconds), "loop")
        self._stack.push_async_callback(self._watching.cancel)
        agent_id = (
            directory.agent_id(settings.agent_id) if directory else check_agent_id(settings.agent_id or "agent-memory")
        )
        port = bind_kafka_port(settings)
        self._stack.callback(port.socket.close)
        self.engine = LogEngine(
            settings=settings,
            agent_id=agent_id,
            wal_directory=directory.wal if directory else None,
            metadata=metadata,
            objects=objects,
            clock=self._clock,
            config_of=self._log_config,
            lost=self._look_again,
            new_leader=self._leader_maker(),
        )
        self._stack.push_async_callback(self.engine.abort)
        self._stack.push_async_callback(self.doors.close)
        self.doors.bind()
        self._groups = self._make_groups(agent_id, metadata)
        self._descriptors = TopicDescriptors(objects, self._clock, leads=self._leads_first_partition)
        self._stack.push_async_callback(self._descriptors.close)
        self._configs = DynamicConfigs(
            store=metadata,
            settings=node_defaults(settings),
            given=given_defaults(self._given),
            group_settings=group_defaults(settings),
            changed=self._apply_defaults,
        )
        self._view = ClusterView(
            metadata,
            self._clock,
            agent_id=agent_id,
            liveness_ms=settings.liveness,
            lease_ttl_ms=settings.lease_ttl,
        )
        self._topics = Topics(
            store=metadata,
            engine=self.engine,
            node_defaults=self._configs.topic_defaults(),
            default_partitions=settings.default_partitions,
            changed=self._groups.topics_changed,
            place=self._place_topics,
            led=FirstLeaders(self._view, self._clock).wait,
            durability=LedDurability(self._view).of,
            descriptors=self._descriptors,
            least_segment_bytes=self._least_segment_bytes,
            clock=self._clock,
            auto_create_delay_ms=settings.auto_create_delay,
        )
        self.broker = Broker(
            settings=settings,
            identity=Identity(
                cluster_id=await metadata.cluster_id(),
                node_id=NOT_A_NODE,
                agent_id=agent_id,
                kafka_address=str(Address(*port.endpoint)),
                http_address=self.doors.told_http(port.endpoint.host),
            ),
            clock=self._clock,
            metadata=metadata,
            engine=self.engine,
            topics=self._topics,
            groups=self._groups,
            nodes=Nodes(self._view),
            configs=self._configs,
        )
        self.kafka = KafkaListener(self.broker, self._door_measures["kafka"])
        self._make_forwarder()
        self._context = self._door_context(metadata, port)
        await self.doors.listen_for_peers(
            self._context, self._local, self._peers, is_shared=self._is_agent and is_shared(settings)
        )
        if self._is_agent:
            self._membership = Membership(
                store=metadata,
                info=self._agent_info(agent_id, port),
                node_id=settings.node_id,
                clock=self._clock,
                heartbeat_ms=settings.heartbeat,
            )
            self._store_watch = self._make_store_watch(self._membership)
        self._assigner = Assigner(
            membership=self._membership,
            view=self._view,
            transfers=metadata,
            placements=metadata,
            topics=self._topics,
            partitions=self.engine,
            shards=self._groups,
            clock=self._clock,
            interval_ms=settings.rebalance,
            store_watch=self._store_watch,
            nudge=self.doors.nudge,
        )
        await self._configs.refresh()
        await self._topics.refresh()
        await self.engine.start(self._topics)
        await self._join_cluster(metadata)
        self._descriptors.start(
            lambda: self._topics, interval_ms=settings.garbage_interval, check_ms=settings.garbage_grace
        )
        self._stack.push_async_callback(self.kafka.close)
        await self.kafka.start(port)
        await self.doors.open(self._context, self.forwarder, objects)
        if directory is not None:
            self._watch_storage(directory)

    # --- parts ---

    def _door_context(self, metadata: MetadataStore, port: KafkaPort) -> DoorContext:
        (kafka,) = parse_bootstrap(port.address)
        return DoorContext(
            broker=self.broker,
            records=RecordDoor(
                self._topics,
                self.forwarder,
                self._clock,
                self.engine.threads,
                auto_create_topics=self.settings.auto_create_topics,
            ),
            planner=Planner(
                topics=self._topics,
                forwarder=self.forwarder,
                reader=self.engine.reader,
                committed_logs=self.engine.committed_logs,
                store=metadata,
            ),
            metadata=metadata,
            kafka=kafka,
            measures=self._measures(),
            work=self._cluster_work(),
            pipelines=Registry(state_directory(os.environ)).records,
        )

    def _cluster_work(self) -> ClusterWork:
        work = ClusterWork(
            self.broker.identity.agent_id, self._activity.now, partial(node_wal, self.broker), self._peers, self._clock
        )
        self._stack.push_async_callback(work.close)
        return work

    def _measures(self) -> NodeMeasures:
        return NodeMeasures(
            doors=self._door_measures,
            objects=self._store.measures,
            loop_delay_seconds=self._loop_delay_seconds,
            engine=self.engine,
            view=self._view,
            assigner=lambda: self._assigner,
            listeners=lambda: {"kafka": self.kafka.traffic, **self.doors.traffic},
            kafka_requests=lambda: self.kafka.requests,
        )

    def _make_forwarder(self) -> None:
        self._activity = Activity(self.broker, self._door_measures)
        self._local = LocalPeer(
            self.broker,
            flush=self.engine.uploader.flush,
            nudge_transfers=self._look_again,
            work=self._activity.now,
            wal=partial(node_wal, self.broker),
        )
        self._stack.push_async_callback(self._peers.close)
        self.forwarder = Forwarder(
            agent_id=self.broker.identity.agent_id,
            local=self._local,
            peers=self._peers,
            leader_address=self._leader_address,
            refresh_routes=self._view.refresh,
            clock=self._clock,
        )

    def _leader_maker(self) -> Callable[..., PartitionLeader]:
        """What is traced costs a little, and OpenTelemetry may not be there: only who asks for it has it."""
        if not self.settings.traces:
            return PartitionLeader
        tracing = open_tracing()
        self._stack.push_async_callback(tracing.close)
        from streamhouse.log.traced_leader import TracedLeader

        return partial(TracedLeader, tracing.tracer)

    def _leader_address(self, topic_id: UUID, partition: int) -> tuple[str, str] | None:
        """This node knows best what it leads, and needs no address for that."""
        at = TopicPartition(topic_id, partition)
        here = self.engine.leadership.leaders.get(at)
        if here is not None and (here.knows_the_end or self.broker.nodes.is_alone):
            return self.broker.identity.agent_id, ""
        return self.broker.nodes.peer_that_leads(at)

    def _connect_peer(self, address: str) -> RemotePeer:
        from streamhouse.client.internal import PeerClient
        from streamhouse.server.grpc.listener import ENVELOPE_BYTES, message_limit_bytes

        return PeerClient(
            address,
            max_message_bytes=message_limit_bytes(self.settings),
            max_answer_bytes=self.settings.max_request_bytes + ENVELOPE_BYTES,
        )

    def _agent_info(self, agent_id: str, port: KafkaPort) -> AgentInfo:
        settings = self.settings
        grpc = self.doors.grpc
        address = str(Address(port.endpoint.host, grpc.port)) if grpc is not None and is_shared(settings) else ""
        return AgentInfo(
            agent_id=agent_id,
            address=address,
            kafka_address=str(Address(*port.endpoint)),
            zone=settings.zone,
            agent_group=settings.agent_group,
            durability=self._configs.topic_defaults()["streamhouse.durability"],
        )

    async def _join_cluster(self, metadata: MetadataStore) -> None:
        """Register, and lead what falls to this agent, before anybody can connect."""
        if self._membership is not None:
            row = await self._membership.register()
            self.broker.identity = replace(self.broker.identity, node_id=row.node_id)
            await self._configs.joined(row.node_id)
            self._stack.push_async_callback(self._heartbeats.cancel)
            self._heartbeats.keep(self._membership.keep_alive, "heartbeat")
        if self._store_watch is not None:
            self._heartbeats.keep(self._store_watch.run, "store")
        self._stack.push_async_callback(self._groups.abort)
        await self._groups.start()
        self._stack.callback(metadata.subscribe(self._assigner.wake))
        self._stack.callback(metadata.subscribe(self._configs.wake))
        self._watching.keep(lambda: self._configs.follow(self.settings.rebalance), "configs")
        self._stack.push_async_callback(self._assigner.stop)
        await self._assigner.start()

    def _make_store_watch(self, membership: Membership) -> StoreWatch:
        return StoreWatch(
            membership=membership,
            view=self._view,
            objects=self._store,
            overdue_ms=self.engine.store_overdue_ms,
            known=self.engine.heed_store_access,
            clock=self._clock,
            patience=StorePatience(recovery_ms=self.settings.lease_ttl),
        )

    def _make_groups(self, agent_id: str, metadata: MetadataStore) -> GroupCoordinator:
        settings = self.settings
        return GroupCoordinator(
            agent_id=agent_id,
            store=metadata,
            clock=self._clock,
            topics=lambda: {topic.name: TopicShape(topic.topic_id, topic.partition_count) for topic in self._topics},
            lease_ttl_ms=settings.lease_ttl,
            lease_renewal_ms=settings.lease_renewal,
            offsets_retention_ms=settings.offsets_retention,
            classic_limits=ClassicLimits(
                min_session_timeout_ms=settings.group_min_session_timeout,
                max_session_timeout_ms=settings.group_max_session_timeout,
                initial_rebalance_delay_ms=settings.group_initial_rebalance_delay,
                max_size=settings.group_max_size,
            ),
            consumer_limits=ConsumerLimits(
                session_timeout_ms=settings.group_consumer_session_timeout,
                heartbeat_interval_ms=settings.group_consumer_heartbeat_interval,
                max_size=settings.group_max_size,
                migration=MigrationPolicy(settings.group_consumer_migration_policy),
            ),
            embedded=KafkaEmbeddedProtocol(),
            group_config=lambda group_id: self._configs.own(Configured(ConfigKind.GROUP, group_id)),
            lost=self._look_again,
        )

    def _leads_first_partition(self, topic: Topic) -> bool:
        return self.engine.leadership.leaders_of(topic)[0] is not None

    async def _place_topics(self) -> None:
        """A topic was made: lead what of it falls to this agent, before its maker hears of it."""
        try:
            await self._assigner.look_now()
        except StreamHouseError as problem:
            _log.warning("a new topic has no leaders yet: %s", problem)
            self._assigner.wake()

    def _apply_defaults(self) -> None:
        defaults = self._configs.topic_defaults()
        self._topics.set_defaults(defaults)
        if self._membership is not None:
            self._membership.info = replace(self._membership.info, durability=defaults["streamhouse.durability"])
            self._assigner.wake()

    def _look_again(self) -> None:
        self._assigner.wake()

    @property
    def addresses(self) -> dict[str, str]:
        """What is open, and where."""
        return {"kafka": self.kafka.address, **self.doors.addresses}

    # --- what it stands on ---

    def _watch_storage(self, directory: DataDirectory) -> None:
        self._storage_watch = StorageWatch(
            places=[*directory.places, *self._stores],
            lost_wal_file=lambda: self.engine.lost_wal_file,
            clock=self._clock,
        )
        self._watching.start(self._until_gone(self._storage_watch), "storage")

    @property
    def _stores(self) -> list[Path]:
        """Those that are on this machine's disk."""
        metadata = metadata_file(metadata_url(self.settings)) if self._metadata is None else None
        objects = objects_directory(objects_url(self.settings)) if self._objects is None else None
        return [place for place in (metadata, objects) if place is not None]

    async def _until_gone(self, watch: StorageWatch) -> None:
        gone = await watch.until_gone()
        _log.critical("%s is gone: it was removed or replaced; nothing more is acknowledged, and the node ends", gone)
        self.engine.give_up_disk(StorageUnavailable(f"the node's storage is gone: {gone.name} was removed"))
        self._failed()

    @property
    def has_failed(self) -> bool:
        return self.engine.gone is not None

    def _has_where_to_upload(self) -> bool:
        return self._storage_watch is None or not set(self._storage_watch.gone()).intersection(self._stores)

    # --- ending ---

    async def drain(self) -> None:
        """Hand over to other agents, stop accepting, finish what was received, flush to the object store, end; all of
        it within `shutdown_timeout`, or a few seconds more where clients are slow to go."""
        deadline_ms = self._clock.monotonic_ms() + self.settings.shutdown_timeout
        if self._membership is not None:
            await self._assigner.drain(int(self.settings.shutdown_timeout * _HAND_OVER_SHARE))
            if self._view.live:
                # Clients learn from our answers who leads now; a closed port would only make them wait and ask again.
                await self._clock.sleep_ms(_LINGER_MS)
        await self._assigner.stop()
        # Those first whose members and readers are clients of this node's own Kafka port, and leave their groups by it.
        await self.doors.drain()
        await self._groups.stop()
        await self.kafka.drain()
        flush_ms = max(_LEAST_FLUSH_MS, deadline_ms - self._clock.monotonic_ms())
        await self.engine.stop(flush_ms if self._has_where_to_upload() else _LEAST_FLUSH_MS)
        await self._heartbeats.cancel()
        if self._membership is not None:
            await self._membership.deregister()
        await self._stack.aclose()

    async def kill(self) -> None:
        """End as a crash would, with nothing finished or flushed."""
        await self.doors.close()
        await self.kafka.close()
        await self._stack.aclose()

    async def _open_metadata(self, settings: Settings) -> MetadataStore:
        metadata = await open_metadata(metadata_url(settings), self._clock)
        self._stack.push_async_callback(metadata.close)
        return metadata

    async def _open_objects(self, settings: Settings) -> ObjectStore:
        if is_sent_in_the_clear(settings):
            _log.warning(
                "records and keys go to S3 over http: anybody on the way can read them; use an https:// endpoint"
            )
        objects = await open_store(objects_url(settings), self._clock, s3_options(settings))
        self._stack.push_async_callback(objects.close)
        return objects

    def _log_config(self, topic: Topic) -> LogConfig:
        return self._topics.log_config_of(topic)
