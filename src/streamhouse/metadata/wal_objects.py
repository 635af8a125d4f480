"""What the object WAL asks of the metadata store: an object is durable once its ranges are committed.

A partition's *durable end* is the end of its last committed segment or WAL range, whichever is further. Ranges follow
one another; those that segments cover are no longer needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from streamhouse.model.names import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class WalRange:
    """Consecutive batches of one partition, [base_offset, end_offset), at [position, position + size_bytes) of an
    object. `checksum` is the CRC-32C of those bytes."""

    partition: TopicPartition
    epoch: int
    base_offset: int
    end_offset: int
    position: int
    size_bytes: int
    checksum: int
    object_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WalCommit:
    """One object with all its ranges, in the order of their positions; a partition may have several, of one epoch or of
    more, each following the one before. `commit_id` makes a repeat harmless."""

    object_key: str
    commit_id: UUID
    agent_id: str
    size_bytes: int
    ranges: tuple[WalRange, ...]


class WalObjectStore(Protocol):
    async def commit_wal_objects(self, commits: Sequence[WalCommit]) -> list[list[Exception | None]]:
        """All in one transaction, in order; for each commit, its ranges judged one by one: None when it is durable (now
        or by an earlier try with the same commit id), else StaleEpoch (lease not live or not this agent's at that
        epoch, partition gone, or its durable end elsewhere). An object of which no range is accepted is not stored."""

    async def load_wal_ranges(self, partitions: Sequence[TopicPartition]) -> list[list[WalRange]]:
        """In the order asked: what is above the committed end of each, by base offset."""

    async def retire_wal_objects(self, limit: int) -> int:
        """Drop objects whose ranges segments cover, every one (or its topic is gone), with those ranges, and make them
        garbage which may be removed at once; returns how many objects."""

    async def list_wal_object_keys(self) -> list[str]:
        """Of all objects that are committed and not yet retired."""
