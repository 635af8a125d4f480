"""What exactly-once sinks ask of the metadata store: which try of a batch counts, who writes it, whether it is done.

A sink's batch is *begun* when its row exists, with the manifest of the objects that are to be appended, and *done* when
they are. In between every try finishes what was begun, whatever it brought itself. Objects can be *abandoned* until
then, and an abandoned object is never part of a batch that is begun later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

FAILED = -1
"""The number of records of a batch that nobody can finish."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSinkBatch:
    """A try of a batch. `object_keys` are all that the manifest names."""

    sink_id: str
    batch_id: int
    manifest_key: str
    object_keys: tuple[str, ...]
    record_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkBatch:
    """A batch that was begun; manifest and count are those of the try that began it. `age_ms` is since then. One that
    has failed is done as well, in that nobody works on it any more.

    No other batch, of this sink or another, is written with this producer id and epoch."""

    sink_id: str
    batch_id: int
    manifest_key: str
    record_count: int
    producer_id: int
    producer_epoch: int
    age_ms: int
    is_done: bool

    @property
    def has_failed(self) -> bool:
        return self.record_count == FAILED


class SinkStore(Protocol):
    async def find_sink_batch(self, sink_id: str, batch_id: int) -> SinkBatch | None: ...

    async def begin_sink_batch(self, batch: NewSinkBatch) -> SinkBatch:
        """Begin it, or get the batch as an earlier try began it. InvalidInput if one of the objects was abandoned, or
        if the batch is so old that whether it was done is forgotten.

        A sink keeps its producer id, each batch with the next epoch, unless epochs have run out or an earlier batch is
        not done: what is written with that one's epoch must not be refused for the sake of a later one's."""

    async def claim_sink_batches(self, idle_ms: int, limit: int) -> list[SinkBatch]:
        """Batches that were begun, are not done, and that nobody has claimed for so long; now they are claimed, so that
        no other agent gets them. To begin a batch is to claim it."""

    async def keep_sink_batch(self, sink_id: str, batch_id: int) -> None:
        """Claim it again, while working on it."""

    async def finish_sink_batch(self, sink_id: str, batch_id: int) -> None:
        """It is done, now or by an earlier call."""

    async def fail_sink_batch(self, sink_id: str, batch_id: int) -> None:
        """It will never be done, whoever tries; unless it is already."""

    async def abandon_staged_objects(self, sink_id: str, batch_id: int, object_keys: Sequence[str]) -> bool:
        """Whether these objects of a batch may be removed: not if it is begun and not done. If so, no later try can
        begin with one of them."""

    async def prune_sink_batches(self, keep_ms: int, keep_last_ms: int) -> None:
        """Forget batches that were done, and objects that were abandoned, so long ago; of each sink the last batch is
        kept for `keep_last_ms`, for a query that was stopped may run its last batch again, however late."""
