"""A local WAL with owners that remember what they were told, crash images of its directory, and disks that break."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from itertools import count
from pathlib import Path

from log_parts.batches import placed
from log_parts.leaders import TOPIC_ID
from log_parts.waiting import until
from services.clock import ManualClock
from streamhouse.format.wal_entry import WalBatch, entry_prefix
from streamhouse.log.local_wal import LocalWal
from streamhouse.log.recovery import Recovered, recover
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_files import WalFile
from streamhouse.model.errors import StreamHouseError

_numbers = count(1)


class Owner:
    """A partition as the WAL knows it: what it appended and what became of it."""

    def __init__(self, partition: int = 0) -> None:
        self.partition = partition
        self.wal_prefix = entry_prefix(TOPIC_ID, partition)
        self.appended: list[tuple[int, memoryview]] = []
        self.durable_end = 0
        self.committed_end = 0
        self.problems: list[StreamHouseError] = []

    @property
    def next_offset(self) -> int:
        return self.appended[-1][0] if self.appended else self.durable_end

    @property
    def high_watermark(self) -> int:
        return self.durable_end

    @property
    def acknowledged(self) -> list[bytes]:
        return [bytes(batch) for end_offset, batch in self.appended if end_offset <= self.durable_end]

    def append(self, wal: LocalWal, size_bytes: int = 100) -> memoryview:
        batch: memoryview = placed(self.next_offset, size_bytes, fill=next(_numbers).to_bytes(4, "big"))
        self.appended.append((self.next_offset + 1, batch))
        wal.append(self, batch, self.next_offset)
        return batch

    def durable(self, end_offset: int) -> None:
        assert end_offset > self.durable_end, "what is durable is reported once"
        self.durable_end = end_offset

    def not_durable(self, problem: StreamHouseError) -> None:
        self.problems.append(problem)
        self.appended = [item for item in self.appended if item[0] <= self.durable_end]


class OpenWal:
    """A WAL in a directory, opened on what is there."""

    def __init__(self, directory: Path, file_bytes: int = 4096) -> None:
        directory.mkdir(exist_ok=True)
        self.directory = directory
        self.clock = ManualClock()
        self.relieved: list[list[WalOwner]] = []
        self.wal = LocalWal(directory, file_bytes, self.clock, self._relieve)
        self.recovered: list[tuple[WalBatch, bytes]] = []

    async def __aenter__(self) -> OpenWal:
        found = recover(self.directory, lambda entry, batch, _: self.recovered.append((entry, bytes(batch))))
        await self.wal.open(found.files, found.end_position)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.wal.close()

    def _relieve(self, owners: Iterable[WalOwner]) -> None:
        self.relieved.append(list(owners))

    async def append(self, owner: Owner, *sizes: int) -> None:
        """Append and wait until it is durable."""
        for size_bytes in sizes:
            owner.append(self.wal, size_bytes)
        self.wal.kick()
        await until(lambda: owner.durable_end == owner.next_offset, "the batches are durable")

    async def image(self, name: str = "image") -> Path:
        """The directory as it would be found after a kill now, when no file is being made or removed."""
        await until(lambda: not self.wal._tasks, "no file is being made or removed")
        image = self.directory.parent / name
        shutil.rmtree(image, ignore_errors=True)
        shutil.copytree(self.directory, image)
        return image

    async def until_spare(self) -> None:
        await until(lambda: self.wal._spare is not None, "there is a spare file")

    @property
    def current(self) -> WalFile:
        return self.wal._live[-1]

    @property
    def live_files(self) -> int:
        return len(self.wal._live)

    def break_disk_under(self, file: WalFile) -> None:
        """Every later write to the file fails with ENOSPC; what it holds stays in its directory."""
        full = os.open("/dev/full", os.O_RDWR | os.O_CLOEXEC)
        os.dup2(full, file.fd, inheritable=False)
        os.close(full)


def replay(directory: Path) -> dict[int, list[bytes]]:
    """What recovery finds, by partition, in order."""
    found: dict[int, list[bytes]] = {}
    recovered = recover(directory, lambda entry, batch, _: found.setdefault(entry.partition, []).append(bytes(batch)))
    close_files(recovered)
    return found


def close_files(recovered: Recovered) -> None:
    for file in recovered.files:
        os.close(file.fd)
