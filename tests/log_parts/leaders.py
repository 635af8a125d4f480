"""A partition leader on a WAL that becomes durable, or fails, when the test says so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from log_parts.batches import EPOCH, header_of
from services.clock import ManualClock
from streamhouse.log.budget import ByteBudget
from streamhouse.log.leader import LogResources, PartitionLeader
from streamhouse.log.tail_memory import TailMemory
from streamhouse.log.wal import WalOwner
from streamhouse.metadata.store import PartitionRow, SegmentRow
from streamhouse.model.errors import StorageUnavailable, StreamHouseError
from streamhouse.model.names import TopicPartition
from streamhouse.model.topic import LogConfig, effective_config, parse_log_config

TOPIC_ID = UUID(int=7)
PARTITION = TopicPartition(TOPIC_ID, 0)
FOREVER_MS = 2**60


def log_config(**overrides: str) -> LogConfig:
    """Configs by their Kafka names with '_' for '.'."""
    return parse_log_config(effective_config({name.replace("_", "."): value for name, value in overrides.items()}, {}))


class HeldWal:
    """Nothing becomes durable until `sync`; `lose` is a failed sync."""

    def __init__(self) -> None:
        self.waiting: list[tuple[WalOwner, memoryview, int]] = []
        self.covered_up_to: dict[WalOwner, int] = {}
        self.forgotten: list[WalOwner] = []
        self.problem: StreamHouseError | None = None
        self.kicks = 0

    def check_writable(self) -> None:
        if self.problem is not None:
            raise self.problem

    def append(self, owner: WalOwner, batch: memoryview, end_offset: int) -> None:
        self.waiting.append((owner, batch, end_offset))

    def kick(self) -> None:
        self.kicks += 1

    def covered(self, owner: WalOwner, end_offset: int) -> None:
        self.covered_up_to[owner] = end_offset

    def forget(self, owner: WalOwner) -> None:
        self.forgotten.append(owner)

    async def close(self) -> None:
        return

    def sync(self, count: int | None = None) -> None:
        """The oldest entries, or all of them, are on disk."""
        count = len(self.waiting) if count is None else count
        done, self.waiting = self.waiting[:count], self.waiting[count:]
        newest = {owner: end_offset for owner, _, end_offset in done}
        for owner, end_offset in newest.items():
            owner.durable(end_offset)

    def lose(self, problem: StreamHouseError | None = None) -> None:
        """None of what waits will ever be on disk."""
        owners = dict.fromkeys(owner for owner, _, _ in self.waiting)
        self.waiting.clear()
        for owner in owners:
            owner.not_durable(problem or StorageUnavailable("the disk is gone"))


@dataclass
class Ack:
    """Who appended, and what it heard."""

    heard: list[str | StreamHouseError] = field(default_factory=list)

    def durable(self) -> None:
        self.heard.append("durable")

    def failed(self, problem: StreamHouseError) -> None:
        self.heard.append(problem)

    @property
    def is_durable(self) -> bool:
        return self.heard == ["durable"]


class Appended(NamedTuple):
    base_offset: int
    append_time_ms: int


class Partition:
    """One leader and everything around it."""

    def __init__(
        self,
        *,
        config: LogConfig | None = None,
        next_offset: int = 0,
        log_start_offset: int = 0,
        segments: list[SegmentRow] | None = None,
        producer_state: bytes = b"",
        epochs: tuple[tuple[int, int], ...] = (),
        buffer_bytes: int = 2**20,
        partition_buffer_bytes: int = 2**20,
        tail_bytes: int = 2**20,
        clock: ManualClock | None = None,
        partition: TopicPartition = PARTITION,
    ) -> None:
        self.wal = HeldWal()
        self.clock = clock or ManualClock()
        self.node_buffer = ByteBudget(buffer_bytes)
        self.due: list[PartitionLeader] = []
        self.leader = PartitionLeader(
            topic="orders",
            row=PartitionRow(
                topic="orders",
                partition=partition,
                log_start_offset=log_start_offset,
                next_offset=next_offset,
                durable_end=next_offset,
                producer_state=producer_state,
                epochs=epochs,
            ),
            segments=segments or [],
            epoch=EPOCH,
            config=config or log_config(),
            wal=self.wal,
            resources=LogResources(
                clock=self.clock,
                buffer=self.node_buffer,
                partition_buffer_bytes=partition_buffer_bytes,
                tail_memory=TailMemory(tail_bytes),
                upload_due=self.due.append,
            ),
        )
        self.leader.writable_until_ms = FOREVER_MS

    def append(self, produced: memoryview, *, owned: bool = False) -> tuple[Appended, Ack]:
        ack = Ack()
        return Appended(*self.leader.append(produced, header_of(produced), ack, owned=owned)), ack

    def read_all(self) -> bytes:
        """What a consumer sees of the tail."""
        leader = self.leader
        return b"".join(leader.tail.read(leader.tail.start_offset, leader.high_watermark, 2**40))


def segment_row(base_offset: int, end_offset: int, *, size_bytes: int = 1000, timestamp_ms: int = 1_000) -> SegmentRow:
    return SegmentRow(
        base_offset=base_offset,
        end_offset=end_offset,
        record_count=end_offset - base_offset,
        size_bytes=size_bytes,
        min_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        epoch=EPOCH,
        object_key=f"segments/{base_offset}",
        checksum=0,
    )
