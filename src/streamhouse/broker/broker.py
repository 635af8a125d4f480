"""One node's broker: the functions behind every listener, in no protocol's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from streamhouse.broker.admission import Admission
from streamhouse.broker.dynamic_configs import DynamicConfigs
from streamhouse.broker.fetch import Fetcher
from streamhouse.broker.nodes import Nodes
from streamhouse.broker.offsets import newest_timestamp, offset_at
from streamhouse.broker.producer_ids import ProducerIds
from streamhouse.broker.topics import Topics
from streamhouse.format.batch import check_produced
from streamhouse.groups.coordinator import GroupCoordinator
from streamhouse.log.budget import ByteBudget
from streamhouse.log.engine import LogEngine
from streamhouse.log.leader import Acknowledgement, Appended, PartitionLeader
from streamhouse.log.local_wal import LocalWal
from streamhouse.log.wal_state import LocalWalState, ObjectWalState
from streamhouse.metadata.store import MetadataStore, SegmentRow
from streamhouse.model.errors import OffsetOutOfRange, PolicyViolation, StorageUnavailable
from streamhouse.model.settings import Settings
from streamhouse.runtime.clock import Clock

NOT_A_NODE = -1
"""The node id of a server without an agent, which clients are never sent to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who this node is to its clients, and where they are told to call it: "" for a door that is not open."""

    cluster_id: str
    node_id: int
    agent_id: str
    kafka_address: str = ""
    http_address: str = ""


class Broker:
    def __init__(
        self,
        *,
        settings: Settings,
        identity: Identity,
        clock: Clock,
        metadata: MetadataStore,
        engine: LogEngine,
        topics: Topics,
        groups: GroupCoordinator,
        nodes: Nodes,
        configs: DynamicConfigs,
    ) -> None:
        self.settings = settings
        self.identity = identity
        self.clock = clock
        self.topics = topics
        self.groups = groups
        self.nodes = nodes
        self.configs = configs
        self.producer_ids = ProducerIds(metadata)
        self.fetcher = Fetcher(engine.reader)
        self.committed_logs = engine.committed_logs
        self.buffer: ByteBudget = engine.buffer
        """The memory for records that are not yet in the object store."""
        self.admission = Admission(engine.threads, clock)
        """For batches that they do want looked at."""
        self._engine = engine

    @property
    def led(self) -> list[PartitionLeader]:
        """The partitions that this node leads."""
        return list(self._engine.leadership.leaders.values())

    @property
    def storage_problem(self) -> StorageUnavailable | None:
        """Why this node is about to end: what it keeps on its own disk was taken away."""
        return self._engine.gone

    def wal_states(self) -> tuple[LocalWalState | None, ObjectWalState]:
        """Of the WAL on this node's own disk, if it has one, and of that in the object store."""
        wals = self._engine.wals
        return wals.local.state() if isinstance(wals.local, LocalWal) else None, wals.object.state()

    @property
    def oldest_upload_ms(self) -> int:
        """For how long the segment has been on its way to the object store that is the oldest of those."""
        return self._engine.uploader.oldest_ms

    @property
    def syncs(self) -> tuple[int, int]:
        """How often something appended became durable in either WAL."""
        wals = self._engine.wals
        return sum(wals.local.measures.seconds.counts), sum(wals.object.measures.seconds.counts)

    def produce(
        self,
        leader: PartitionLeader,
        batch: memoryview,
        acknowledgement: Acknowledgement,
        *,
        owned: bool = False,
    ) -> Appended:
        """Check a batch that the leader's rules do not want looked at, and append it. It starts to become durable with
        the next `commit_appends`."""
        return leader.append(batch, check_produced(batch), acknowledgement, owned=owned)

    def commit_appends(self) -> None:
        self._engine.commit_appends()

    async def offset_at(self, leader: PartitionLeader, timestamp_ms: int) -> tuple[int, int] | None:
        return await offset_at(self._engine.reader, leader, timestamp_ms)

    async def newest_timestamp(self, leader: PartitionLeader) -> tuple[int, int] | None:
        return await newest_timestamp(self._engine.reader, leader)

    async def replace_segments(
        self, leader: PartitionLeader, commit_id: UUID, removed: Sequence[str], added: Sequence[SegmentRow]
    ) -> None:
        """Put segments in the place of others; with the same commit id it is done once."""
        await self._engine.replacer.replace(leader, commit_id, removed, added)

    async def delete_records(self, leader: PartitionLeader, before_offset: int) -> int:
        """Forget the records below an offset (-1: all there are); returns the new log start offset. A log that is only
        compacted is to keep the last record of every key: PolicyViolation."""
        if leader.config.cleanup_policy == {"compact"}:
            raise PolicyViolation(
                f"records of {leader.topic} cannot be deleted: its cleanup.policy is compact",
                hint="with compact,delete they can",
            )
        target = leader.high_watermark if before_offset == -1 else before_offset
        if not 0 <= target <= leader.high_watermark:
            raise OffsetOutOfRange(f"offset {target} is beyond {leader.high_watermark}, the end of the log")
        if target > leader.log_start_offset:
            if target > leader.committed_end:
                await self._engine.uploader.flush(leader)
            await self._engine.maintenance.move_log_start(leader, target)
        return leader.log_start_offset
