"""An agent's own disk and the WAL on it, as models: what was synced is there after a crash, the rest may be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from sim.cluster.loop import Process, VirtualLoop
from streamhouse.format.batch import read_header
from streamhouse.format.wal_entry import WalBatch
from streamhouse.log.local_wal import LocalWal
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_files import WalFile
from streamhouse.model.errors import StorageUnavailable
from streamhouse.model.names import TopicPartition

_ENTRIES_IN_A_FILE = 6
_REOPENED_AFTER_SECONDS = 0.25


@dataclass(slots=True, eq=False)
class ModelFile:
    """Like a WalFile. `pins`: for each owner with entries in it, where the newest of them ends."""

    path: str
    entries: list[tuple[WalBatch, bytes]] = field(default_factory=list)
    pins: dict[object, int] = field(default_factory=dict)
    appended: int = 0


@dataclass(slots=True, eq=False)
class Disk:
    """What survives its agent's processes; only the newest of them writes to it."""

    files: list[ModelFile] = field(default_factory=list)
    writer: ModelWal | None = None
    sync_fails: float = 0.0

    def synced_end(self, partition: TopicPartition) -> int:
        key = (partition.topic_id, partition.partition)
        ends = (
            entry.end_offset
            for file in self.files
            for entry, _ in file.entries
            if (entry.topic_id, entry.partition) == key
        )
        return max(ends, default=0)


class ModelWal(LocalWal):
    """Group commit like the real one, which it stands in for: gathered, kicked, synced, reported."""

    def __init__(self, disk: Disk, loop: VirtualLoop, random: Random, process: Process) -> None:
        self._disk = disk
        self._loop = loop
        self._random = random
        self._process = process
        self._file = ModelFile("")
        self._gathered: list[tuple[WalOwner, memoryview, int, ModelFile]] = []
        self._is_kicked = False
        self._is_writing = False
        self._refusal: StorageUnavailable | None = None
        disk.writer = self

    async def open(self, recovered: Iterable[WalFile], first_position: int) -> None:
        self._use_new_file()

    def check_writable(self) -> None:
        if self._refusal is not None:
            raise self._refusal

    def append(self, owner: WalOwner, batch: memoryview, end_offset: int) -> None:
        if self._file.appended >= _ENTRIES_IN_A_FILE:
            self._use_new_file()
        self._file.appended += 1
        self._file.pins[owner] = end_offset
        self._gathered.append((owner, batch, end_offset, self._file))

    def kick(self) -> None:
        if self._is_writing:
            self._is_kicked = True
        elif self._gathered:
            self._is_writing = True
            group, self._gathered = self._gathered, []
            delay = self._random.random() ** 3 * 0.04 + 0.0002
            self._loop.call_later(delay, self._write, group, context=self._loop.nobody)

    def covered(self, owner: WalOwner, end_offset: int) -> None:
        for file in self._disk.files:
            newest = file.pins.get(owner)
            if newest is not None:
                if newest > end_offset:
                    break
                del file.pins[owner]
        self._retire_unneeded()

    def forget(self, owner: WalOwner) -> None:
        for file in self._disk.files:
            file.pins.pop(owner, None)
        self._retire_unneeded()

    async def close(self) -> None:
        return

    def _use_new_file(self) -> None:
        self._file = ModelFile(f"file-{len(self._disk.files)}")
        self._disk.files.append(self._file)

    def _retire_unneeded(self) -> None:
        files = self._disk.files
        while len(files) > 1 and not files[0].pins:
            files.pop(0)

    def _write(self, group: list[tuple[WalOwner, memoryview, int, ModelFile]]) -> None:
        """The kernel does it, so also for a process that was paused or killed meanwhile; then perhaps not all."""
        if self._disk.writer is not self:
            return
        if not self._process.is_alive:
            group = group[: self._random.randint(0, len(group))]
        fails = self._disk.sync_fails and self._random.random() < self._disk.sync_fails
        for owner, batch, end_offset, file in () if fails else group:
            partition = owner.partition
            base_offset = read_header(batch).base_offset
            entry = WalBatch(0, partition.topic_id, partition.partition, 0, len(batch), base_offset, end_offset)
            file.entries.append((entry, bytes(batch)))
        self._loop.call_soon(self._fail if fails else self._report, group, context=self._process.context)

    def _report(self, group: list[tuple[WalOwner, memoryview, int, ModelFile]]) -> None:
        for owner, end_offset in {owner: end_offset for owner, _, end_offset, _ in group}.items():
            owner.durable(end_offset)
        self._is_writing = False
        if self._is_kicked:
            self._is_kicked = False
            self.kick()

    def _fail(self, group: list[tuple[WalOwner, memoryview, int, ModelFile]]) -> None:
        """Everything that is not synced is lost, and nothing is written before another file is."""
        self._refusal = StorageUnavailable("the model disk cannot be written")
        lost, self._gathered = [*group, *self._gathered], []
        for owner in dict.fromkeys(owner for owner, _, _, _ in lost):
            owner.not_durable(self._refusal)
        self._loop.call_later(_REOPENED_AFTER_SECONDS, self._reopen)

    def _reopen(self) -> None:
        self._use_new_file()
        self._refusal = None
        self._is_writing = self._is_kicked = False
