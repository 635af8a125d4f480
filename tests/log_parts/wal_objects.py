"""A model of what the metadata store keeps of WAL objects: leases, durable ends, ranges, and answers that get lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from streamhouse.metadata.wal_objects import WalCommit, WalRange
from streamhouse.model.errors import MetadataUnavailable, StaleEpoch
from streamhouse.model.names import TopicPartition


class MemoryWalObjects:
    """Everything in memory and atomic. `gate` holds up commits before they take effect."""

    def __init__(self) -> None:
        self.leases: dict[TopicPartition, tuple[str, int]] = {}
        self.committed_ends: dict[TopicPartition, int] = {}
        self.durable_ends: dict[TopicPartition, int] = {}
        self.ranges: list[WalRange] = []
        self.garbage: list[str] = []
        self.transactions: list[list[str]] = []
        """The object keys of every commit that was asked for, also of those that failed."""
        self.gate = asyncio.Event()
        self.gate.set()
        self._answers: dict[UUID, list[Exception | None]] = {}
        self._faults: list[tuple[bool, Exception]] = []

    def grant(self, partition: TopicPartition, agent_id: str, epoch: int) -> None:
        """A lease, which ends the one before."""
        self.leases[partition] = (agent_id, epoch)
        self.durable_ends.setdefault(partition, 0)

    def cover(self, partition: TopicPartition, committed_end: int) -> None:
        """Segments have everything below this offset."""
        self.committed_ends[partition] = committed_end
        self.durable_ends[partition] = max(committed_end, self.durable_ends.get(partition, 0))

    def fail(self, *, times: int = 1, lost_answer: bool = False, error: Exception | None = None) -> None:
        self._faults += [(lost_answer, error or MetadataUnavailable("injected fault"))] * times

    async def commit_wal_objects(self, commits: Sequence[WalCommit]) -> list[list[Exception | None]]:
        self.transactions.append([commit.object_key for commit in commits])
        await self.gate.wait()
        lost_answer, problem = self._faults.pop(0) if self._faults else (True, None)
        answers = [self._commit(commit) for commit in commits] if lost_answer else []
        if problem is not None:
            raise problem
        return answers

    def _commit(self, commit: WalCommit) -> list[Exception | None]:
        if commit.commit_id not in self._answers:
            self._answers[commit.commit_id] = [self._judge(commit, wanted) for wanted in commit.ranges]
        return self._answers[commit.commit_id]

    def _judge(self, commit: WalCommit, wanted: WalRange) -> Exception | None:
        if self.leases.get(wanted.partition) != (commit.agent_id, wanted.epoch):
            return StaleEpoch(f"{commit.agent_id} does not lead {wanted.partition} at epoch {wanted.epoch}")
        if self.durable_ends[wanted.partition] != wanted.base_offset:
            return StaleEpoch(f"{wanted.partition} ends at {self.durable_ends[wanted.partition]}")
        assert wanted.object_key == commit.object_key
        assert wanted.position + wanted.size_bytes <= commit.size_bytes
        self.durable_ends[wanted.partition] = wanted.end_offset
        self.ranges.append(wanted)
        return None

    async def load_wal_ranges(self, partitions: Sequence[TopicPartition]) -> list[list[WalRange]]:
        return [
            [
                item
                for item in self.ranges
                if item.partition == partition and item.end_offset > self.committed_ends.get(partition, 0)
            ]
            for partition in partitions
        ]

    async def retire_wal_objects(self, limit: int) -> int:
        keys = list(dict.fromkeys(item.object_key for item in self.ranges))
        needed = [item for item in self.ranges if item.end_offset > self.committed_ends.get(item.partition, 0)]
        needed_keys = {item.object_key for item in needed}
        retired = [key for key in keys if key not in needed_keys][:limit]
        self.ranges = [item for item in self.ranges if item.object_key not in retired]
        self.garbage += retired
        return len(retired)

    async def list_wal_object_keys(self) -> list[str]:
        return list(dict.fromkeys(item.object_key for item in self.ranges))
