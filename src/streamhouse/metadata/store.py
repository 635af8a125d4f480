"""What we ask of the metadata store: small protocols, each method one transaction.

Offsets here are *committed* ones: covered by a segment in the object store. `now` is always the database's clock. A
lease that has expired or was released is nobody's, also while nobody else has taken it. Every call is safe to repeat
after MetadataUnavailable, when it may have taken effect all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from streamhouse.metadata.cluster import ClusterStore
from streamhouse.metadata.configs import ConfigStore
from streamhouse.metadata.groups import CommittedOffset as CommittedOffset
from streamhouse.metadata.groups import CoordinatorStore
from streamhouse.metadata.pins import PinStore
from streamhouse.metadata.restore import RestoreStore
from streamhouse.metadata.sinks import SinkStore
from streamhouse.metadata.totals import TotalsStore
from streamhouse.metadata.wal_objects import WalObjectStore
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRow:
    """A STRM object and the range of the log that it holds, [base_offset, end_offset)."""

    base_offset: int
    end_offset: int
    record_count: int
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    epoch: int
    object_key: str
    checksum: int
    created_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentCommit:
    """One segment to be registered, with what makes it safe and repeatable.

    `base_offset` must be the partition's next offset; `epoch` must be that of the lease the agent holds."""

    partition: TopicPartition
    agent_id: str
    epoch: int
    commit_id: UUID
    segment: SegmentRow
    producer_state: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """Neighbouring segments of a partition, by their object keys, and those to have in their place, by base offset.

    The new ones cover the same offsets without gaps between them, though there need not be a record at each offset.
    They have the newest epoch of the old ones; `epoch` must be that of the lease the agent holds, and `generation` the
    partition's newest (0 if none was ever begun)."""

    partition: TopicPartition
    agent_id: str
    epoch: int
    commit_id: UUID
    removed: tuple[str, ...]
    added: tuple[SegmentRow, ...]
    generation: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """A partition's committed state. `epochs` is its leadership history: (epoch, first offset), oldest first.

    `durable_end` is where its WAL objects end, or its segments if those end later; `replacements` counts how often
    segments took the place of others."""

    topic: str
    partition: TopicPartition
    log_start_offset: int
    next_offset: int
    durable_end: int
    producer_state: bytes
    epochs: tuple[tuple[int, int], ...]
    replacements: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    partition: TopicPartition
    agent_id: str
    epoch: int
    expires_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochStart:
    """A leader is about to write: its epoch's records start at `offset`, and before they are in segments they will be
    on the agent's own disk (`in_local_wal`) or in WAL objects."""

    lease: Lease
    offset: int
    in_local_wal: bool


class TopicStore(Protocol):
    async def create_topic(self, name: str, topic_id: UUID, partition_count: int, config: Mapping[str, str]) -> Topic:
        """Topic and partition rows in one transaction; AlreadyExists if the name is taken, unless by this very topic
        id: that is an earlier try of the same call, and gives what it made. InvalidName if it collides with another
        (`model.names.collision_key`)."""

    async def list_topics(self) -> list[Topic]:
        """By name."""

    async def set_topic_config(self, topic: Topic, config: Mapping[str, str]) -> Topic:
        """Replace the overrides if the topic is stored as `topic` says; else nothing changes. The topic as it is stored
        then, for the caller to judge: one that has these overrides was changed, by this call, by an earlier try of it,
        or by another that wanted the same. NotFound if it is gone."""

    async def grow_topic(self, topic: Topic, partition_count: int) -> Topic:
        """Add partitions, in one transaction, if the topic is stored as `topic` says; else nothing changes. The topic
        as it is stored then, for the caller to judge: one that has the new count was grown, by this call, by an earlier
        try of it, or by another that wanted the same. NotFound if it is gone, InvalidInput if that would be no growth.
        """

    async def delete_topic(self, topic_id: UUID) -> None:
        """Remove topic, partitions, leases, offsets; its segments' objects become garbage. NotFound if gone."""


class SegmentStore(Protocol):
    async def load_partitions(self, partitions: Sequence[TopicPartition]) -> list[PartitionRow]:
        """In the order asked; NotFound if one is gone."""

    async def load_segments(self, partitions: Sequence[TopicPartition]) -> list[list[SegmentRow]]:
        """In the order asked, each by base offset."""

    async def commit_segments(self, commits: Sequence[SegmentCommit]) -> list[Exception | None]:
        """All in one transaction, each judged on its own: None when registered (now or by an earlier try with the
        same commit id), else StaleEpoch (lease not ours at that epoch, partition gone, or next offset elsewhere)."""

    async def begin_generation(self, partition: TopicPartition) -> int:
        """The number of a new plan to replace segments of a partition, above all that were given before. From now on
        nothing can be replaced by an older plan. NotFound if the partition is gone."""

    async def replace_segments(self, replacement: Replacement) -> None:
        """In one transaction: the old rows go, their objects become garbage, the new rows come. A commit id that is
        known is an earlier try and stands, whoever leads by now (it is known for `replacement.HISTORY_MS`).

        StaleEpoch if the lease is not ours at that epoch, the partition is gone, a newer generation was begun, or an
        old segment is no longer there; InvalidInput if the new ones do not fit in the place of the old ones."""

    async def was_replaced(self, commit_id: UUID) -> bool:
        """Whether a replacement with this commit id was done, as far as that is still known."""

    async def begin_epochs(self, agent_id: str, starts: Sequence[EpochStart]) -> list[bool]:
        """Note where each lease's epoch starts, and set the partition's `wal_agent_id` (`cluster.Placement`) to the
        agent or to nobody, in one transaction. Repeating it changes nothing. A lease that is not the agent's at that
        epoch, or has run out, is passed over: its answer is False, and nothing may be written under it."""

    async def advance_log_start(
        self, partition: TopicPartition, agent_id: str, epoch: int, log_start_offset: int
    ) -> list[SegmentRow]:
        """Move the start forward (never back, never past next_offset: InvalidInput), drop the segments wholly below
        it, and make their objects garbage; returns what this call dropped, so a repeated one returns nothing.
        StaleEpoch if the lease is not ours."""

    async def list_garbage(self, older_than_ms: int, limit: int) -> list[str]:
        """Keys of objects that nothing has referred to for at least that long, oldest first."""

    async def forget_garbage(self, keys: Sequence[str]) -> None:
        """They are deleted."""


class LeaseStore(Protocol):
    async def acquire_leases(
        self, agent_id: str, partitions: Sequence[TopicPartition], ttl_ms: int
    ) -> list[Lease | None]:
        """In the order asked; None where another agent's lease is live, another agent's own disk may hold acknowledged
        records of it (`wal_agent_id`), or the partition is gone. Each grant is a new leadership: the epoch grows by
        one, also when the same agent (a new process of it) takes it again."""

    async def renew_leases(self, agent_id: str, leases: Sequence[Lease], ttl_ms: int) -> list[Lease | None]:
        """In the order asked: extends those still held at that epoch and not expired; None for the others. Epochs
        stay."""

    async def release_leases(self, agent_id: str, leases: Sequence[Lease], *, drained: bool) -> None:
        """Expire now, keeping the rows and so the epochs. Leases of others are left alone. `drained`: the agent's own
        disk holds nothing of them that is not in the object store, so anybody may lead them (`wal_agent_id` is "")."""


class ProducerIdStore(Protocol):
    async def allocate_producer_ids(self, count: int) -> int:
        """The first of `count` ids that nobody else gets, ever."""


class MetadataStore(
    TopicStore,
    SegmentStore,
    LeaseStore,
    ProducerIdStore,
    CoordinatorStore,
    ClusterStore,
    WalObjectStore,
    PinStore,
    SinkStore,
    RestoreStore,
    TotalsStore,
    ConfigStore,
    Protocol,
):
    """One database that answers all of them. Calls raise MetadataUnavailable when it cannot be reached."""

    async def cluster_id(self) -> str:
        """Made once, kept forever."""

    async def close(self) -> None: ...
