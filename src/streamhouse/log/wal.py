"""What a partition leader asks of a write-ahead log."""

from __future__ import annotations

from typing import Protocol

from streamhouse.model.errors import StreamHouseError
from streamhouse.model.names import TopicPartition


class WalOwner(Protocol):
    """Whose batches they are: told, in order, what became of them.

    A batch belongs to the epoch that its owner has when it is appended. `high_watermark` is up to where it was told
    that batches are durable, `committed_end` up to where they are in the object store."""

    partition: TopicPartition
    epoch: int
    wal_prefix: bytes
    high_watermark: int
    committed_end: int

    def durable(self, end_offset: int) -> None:
        """All batches below this offset will survive a crash."""

    def not_durable(self, problem: StreamHouseError) -> None:
        """Every batch not yet reported durable is lost; none of them may be acknowledged."""


class Wal(Protocol):
    def check_writable(self) -> None:
        """StorageUnavailable if an append would be refused now."""

    def append(self, owner: WalOwner, batch: memoryview, end_offset: int) -> None:
        """Gather a batch, whose memory must stay as it is until it is reported."""

    def kick(self) -> None:
        """Start writing what was gathered."""

    def covered(self, owner: WalOwner, end_offset: int) -> None:
        """The owner's batches below this offset are in the object store and no longer needed here."""

    def forget(self, owner: WalOwner) -> None:
        """The owner is gone: nothing of it is needed, and what has not been written need not be."""

    async def close(self) -> None:
        """Finish what was appended and stop."""
