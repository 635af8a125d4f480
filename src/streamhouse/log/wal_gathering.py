"""Batches that will share one WAL object, in a run for each owner and epoch."""

from __future__ import annotations

from streamhouse.format.batch import read_header
from streamhouse.log.wal import WalOwner
from streamhouse.model.names import TopicPartition


class OwnedRun:
    """Consecutive batches of one owner and one epoch. `owner` is None once nobody wants to know what becomes of it."""

    __slots__ = ("base_offset", "batches", "end_offset", "epoch", "owner", "partition", "size_bytes")

    def __init__(self, owner: WalOwner, base_offset: int) -> None:
        self.owner: WalOwner | None = owner
        self.partition: TopicPartition = owner.partition
        self.epoch = owner.epoch
        self.base_offset = base_offset
        self.end_offset = base_offset
        self.batches: list[memoryview] = []
        self.size_bytes = 0


class Gathering:
    """What has been appended since the last object was sealed. `since_ms` and `last_ms`: when the first and the last of
    it was; `since_s`: as `since_ms`, for those who measure."""

    __slots__ = ("_newest", "last_ms", "runs", "since_ms", "since_s", "size_bytes")

    def __init__(self, since_ms: int, since_s: float = 0.0) -> None:
        self.since_ms = since_ms
        self.last_ms = since_ms
        self.since_s = since_s
        self.runs: list[OwnedRun] = []
        self.size_bytes = 0
        self._newest: dict[WalOwner, OwnedRun] = {}

    def add(self, owner: WalOwner, batch: memoryview, end_offset: int, now_ms: int) -> None:
        self.last_ms = now_ms
        run = self._newest.get(owner)
        if run is None or run.epoch != owner.epoch:
            run = self._newest[owner] = OwnedRun(owner, read_header(batch).base_offset)
            self.runs.append(run)
        run.batches.append(batch)
        run.end_offset = end_offset
        run.size_bytes += len(batch)
        self.size_bytes += len(batch)

    def drop(self, owner: WalOwner) -> None:
        """Leave out everything of an owner."""
        if self._newest.pop(owner, None) is not None:
            self.runs = [run for run in self.runs if run.owner is not owner]
            self.size_bytes = sum(run.size_bytes for run in self.runs)
