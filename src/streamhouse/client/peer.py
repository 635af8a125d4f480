"""What one node asks of another about the partitions that the other leads, in no protocol's terms."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from streamhouse.model.buffer import Buffer
from streamhouse.model.names import TopicPartition
from streamhouse.runtime.tasks import TaskGroup

ANY_EPOCH = -1

EARLIEST = -2
LATEST = -1
"""Times that are none, with Kafka's numbers: where the log starts, and the high watermark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Produced:
    """Where a batch is now. `append_time_ms` is -1 unless the topic stamps its records."""

    base_offset: int
    append_time_ms: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Whole record batches, the first of which holds the offset that was asked for, or the next one that there is."""

    batches: bytes
    high_watermark: int
    log_start_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOffset:
    """An offset, None if all records are older than the time asked for, and where the log's parts end.

    `uncommitted_bytes` is what the records between `committed_end` and `high_watermark` take, about."""

    offset: int | None
    log_start_offset: int
    committed_end: int
    high_watermark: int
    uncommitted_bytes: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSegment:
    """An object in the store that is to be a segment, and what the metadata store is to know of it."""

    base_offset: int
    end_offset: int
    record_count: int
    size_bytes: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    epoch: int
    object_key: str
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWork:
    """What a node has done since it started, all its listeners together: look twice for a rate. Latencies are of the
    last minute or so, None while there was nothing to measure; what still waits for its WAL counts in the 99th
    percentile. `ends` are the high watermarks of what it leads; `wal_problem` says why the WAL on its disk cannot be
    written, if so; `oldest_upload_ms` is for how long a segment has been on its way to the object store."""

    records_in: int
    bytes_in: int
    records_out: int
    bytes_out: int
    produce_p50_ms: float | None
    produce_p99_ms: float | None
    buffered_bytes: int
    buffer_limit_bytes: int
    ends: Mapping[TopicPartition, int]
    wal_problem: str | None = None
    oldest_upload_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WalFile:
    """`owner_count`: how many partitions have records in it that are in no segment yet."""

    name: str
    size_bytes: int
    is_current: bool
    owner_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WalOnDisk:
    """Files oldest first; `unsynced` is what was appended and is not known to be on disk. `problem` says why appends
    are refused, if they are."""

    files: Sequence[WalFile]
    unsynced_batches: int
    unsynced_bytes: int
    problem: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WalObject:
    """On its way to the object store; its key is "" before its upload begins."""

    key: str
    size_bytes: int
    partition_count: int
    is_stored: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeWal:
    """A node's write-ahead logs: on its disk, if it has one, and what waits for an object or is on its way as one;
    `uncovered` is what they are needed for, durable and in no segment yet."""

    disk: WalOnDisk | None
    gathered_batches: int
    gathered_bytes: int
    in_flight: Sequence[WalObject]
    uncovered_records: int
    uncovered_bytes: int


class Peer(Protocol):
    """A node, this one or another. Every call ends within its time-out, and raises NotLeader if the node does not lead
    the partition. It never passes a call on to a third node."""

    async def produce(
        self,
        partition: TopicPartition,
        batch: Buffer,
        *,
        leader_epoch: int = ANY_EPOCH,
        is_admitted: bool = False,
        timeout_ms: int,
    ) -> Produced:
        """Append one batch and wait until it is durable. Of all failures only OutcomeUnknown may have stored it.

        `is_admitted`, for adoption alone: the topic's rules took its records when they could still be refused."""

    async def fetch(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        max_bytes: int,
        min_bytes: int = 0,
        max_wait_ms: int = 0,
        timeout_ms: int,
    ) -> Fetched:
        """Read at least one batch, if there is one, else up to max_bytes; first wait for min_bytes, at most
        max_wait_ms. The time-out is for the reading and comes on top of that."""

    async def offset_at(self, partition: TopicPartition, timestamp_ms: int, *, timeout_ms: int) -> FoundOffset:
        """The offset of the first record at or after a time; or EARLIEST, or LATEST."""

    async def replace_segments(
        self,
        partition: TopicPartition,
        commit_id: UUID,
        removed: Sequence[str],
        added: Sequence[NewSegment],
        *,
        timeout_ms: int,
    ) -> None:
        """Put segments in the place of others, which are named by their object keys. With the same commit id it is done
        once, however often it is asked for. Fenced if the old ones are no longer what the log consists of."""

    async def flush(self, partition: TopicPartition, *, timeout_ms: int) -> int:
        """Put what is durable now into the object store; returns the offset after the last one in segments."""

    async def nudge_transfers(self, *, timeout_ms: int) -> None:
        """Let it look at the transfers under way now."""

    async def work(self, *, timeout_ms: int) -> NodeWork: ...

    async def wal(self, *, timeout_ms: int) -> NodeWal: ...


class RemotePeer(Peer, Protocol):
    async def close(self) -> None: ...


class Peers:
    """The other nodes, each with one connection, which is kept."""

    def __init__(self, connect: Callable[[str], RemotePeer]) -> None:
        self._connect = connect
        self._peers: dict[str, tuple[str, RemotePeer]] = {}
        self._closing = TaskGroup("peers")

    def at(self, agent_id: str, address: str) -> Peer:
        """The agent at its address. An agent that was elsewhere before has been started anew, so what was asked of it
        there gets no answer any more."""
        known = self._peers.get(agent_id)
        if known is not None and known[0] == address:
            return known[1]
        if known is not None:
            self._closing.start(known[1].close(), agent_id)
        peer = self._connect(address)
        self._peers[agent_id] = (address, peer)
        return peer

    async def close(self) -> None:
        peers, self._peers = self._peers, {}
        for _, peer in peers.values():
            await peer.close()
        await self._closing.wait()
