"""The WAL on the agent's own disk: one log for all partitions, group commit by one writer thread.

The loop gathers entries and hands them to the thread; the thread's completions come back through an eventfd. Files
are prepared ahead in a worker thread. When a write or a sync fails, that file is given up: everything not yet durable
fails, appends are refused, and a new file is tried until one works (an fsync is never tried again). When files are
taken away under it, it ends: no new file makes up for what the old ones held."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from streamhouse.format.wal_entry import FILE_HEADER_BYTES
from streamhouse.log.wal import WalOwner
from streamhouse.log.wal_files import WalFile, WalFiles
from streamhouse.log.wal_measures import WalMeasures
from streamhouse.log.wal_state import LocalWalState, WalFileState
from streamhouse.log.wal_writer import WalWriter
from streamhouse.model.errors import StorageUnavailable
from streamhouse.runtime.clock import Clock
from streamhouse.runtime.measures import stopwatch_s
from streamhouse.runtime.retry import backoff_ms
from streamhouse.runtime.tasks import TaskGroup

_log = logging.getLogger(__name__)

# What an entry takes besides its batch: header, prefix, and at worst a mark of its own before and after it.
_ENTRY_OVERHEAD_BYTES = 16 + 21 + 2 * 24
# With more files than this, partitions that keep the oldest one alive are asked to upload.
_PATIENT_FILES = 4

_Entry = tuple[WalOwner, memoryview, int]


class LocalWal:
    def __init__(
        self,
        directory: Path,
        file_bytes: int,
        clock: Clock,
        relieve: Callable[[Iterable[WalOwner]], None],
    ) -> None:
        """`relieve` is called with the owners whose entries keep old files from being reused."""
        self.measures = WalMeasures()
        self._files = WalFiles(directory, file_bytes)
        self._clock = clock
        self._relieve = relieve
        self._tasks = TaskGroup("wal")
        self._notify_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._writer = WalWriter(self._notify_fd)
        self._live: deque[WalFile] = deque()
        self._current: WalFile
        """Where what is appended now will go."""
        self._written: WalFile | None = None
        """Where the writer is."""
        self._retires_when_switched = False
        self._room_bytes = 0
        self._prepare_below_bytes = 0
        self._spare: WalFile | None = None
        self._preparing = False
        self._in_flight: deque[_Entry | WalFile] = deque()
        self._completed = 0
        """How many entries and files the writer has reported."""
        self._kicks: deque[tuple[int, float]] = deque()
        """For each kick that is not wholly reported: how many had been submitted by then, and when it was."""
        self._backlog: deque[_Entry] = deque()
        self._failed_owners: dict[WalOwner, None] = {}
        self._problem: str | None = None
        """Why nothing can be written, in words: an exception that is raised again and again would keep the frames, and
        so the requests, of everybody who met it."""
        self._failures = 0
        self._mending: WalFile | None = None
        """The file with which the WAL is writable again, once the writer is at it."""
        self._is_reopening = False
        self._is_gone = False
        self._closed = False

    async def open(self, recovered: Iterable[WalFile], first_position: int) -> None:
        """Go on behind what recovery found."""
        self._live.extend(recovered)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._notify_fd, self._on_completions)
        try:
            file = await asyncio.to_thread(self._files.create_first, list(self._live))
        except OSError as problem:
            raise StorageUnavailable(f"cannot make a WAL file: {problem.strerror}") from None
        self._written = file
        self._use(file, first_position, recovers=True)
        self._writer.kick()

    def state(self) -> LocalWalState:
        unsynced = [*(entry for entry in self._in_flight if not isinstance(entry, WalFile)), *self._backlog]
        return LocalWalState(
            files=tuple(
                WalFileState(
                    name=file.path.name,
                    size_bytes=file.size_bytes,
                    is_current=file is self._current,
                    owner_count=len(file.pins),
                )
                for file in self._live
            ),
            unsynced_batches=len(unsynced),
            unsynced_bytes=sum(len(batch) for _, batch, _ in unsynced),
            problem=self._problem,
        )

    def check_writable(self) -> None:
        if self._problem is not None:
            raise StorageUnavailable(self._problem)

    @property
    def lost_file(self) -> Path | None:
        """A file that is open and that no successor would find: somebody has removed it."""
        return next((file.path for file in self._live if _is_removed(file)), None)

    def give_up(self, problem: str) -> None:
        """Nothing becomes durable here any more, also not what is on its way."""
        self._is_gone = True
        if self._problem is None:
            self.measures.failures += 1
        self._problem = problem
        self._settle_failures()

    def append(self, owner: WalOwner, batch: memoryview, end_offset: int) -> None:
        needed_bytes = len(batch) + _ENTRY_OVERHEAD_BYTES
        if self._backlog or needed_bytes > self._room_bytes:
            self._backlog.append((owner, batch, end_offset))
            self._drain_backlog()
        else:
            self._submit(owner, batch, end_offset, needed_bytes)

    def kick(self) -> None:
        submitted = self._completed + len(self._in_flight)
        if submitted > (self._kicks[-1][0] if self._kicks else self._completed):
            self._kicks.append((submitted, stopwatch_s()))
        self._writer.kick()

    def covered(self, owner: WalOwner, end_offset: int) -> None:
        for file in self._live:
            newest = file.pins.get(owner)
            if newest is not None:
                if newest > end_offset:
                    break
                del file.pins[owner]
        self._retire_unneeded()

    def forget(self, owner: WalOwner) -> None:
        for file in self._live:
            file.pins.pop(owner, None)
        self._backlog = deque(entry for entry in self._backlog if entry[0] is not owner)
        self._retire_unneeded()

    def _retire_unneeded(self) -> None:
        while len(self._live) > 1 and not self._live[0].pins:
            if self._live[0] is self._written:
                # Closed now, its descriptor could be another file's by the writer's next write.
                self._retires_when_switched = True
                return
            try:
                self._files.retire(self._live[0])
            except OSError as problem:
                _log.warning("cannot take back WAL file %s yet: %s", self._live[0].path.name, problem)
                return
            self._live.popleft()

    async def close(self) -> None:
        self._closed = True
        await self._tasks.cancel()
        await asyncio.to_thread(self._writer.close)
        self._on_completions()
        asyncio.get_running_loop().remove_reader(self._notify_fd)
        os.close(self._notify_fd)
        if self._spare is not None:
            self._files.remove(self._spare)
        await asyncio.to_thread(self._files.close)
        while self._live:  # whoever looks for lost files later finds none
            os.close(self._live.popleft().fd)

    def _submit(self, owner: WalOwner, batch: memoryview, end_offset: int, needed_bytes: int) -> None:
        self._writer.add(owner.wal_prefix, batch)
        self._in_flight.append((owner, batch, end_offset))
        self._current.pins[owner] = end_offset
        self._room_bytes -= needed_bytes
        if self._room_bytes < self._prepare_below_bytes and self._spare is None and not self._preparing:
            self._prepare(0)

    def _use(self, file: WalFile, first_position: int = 0, *, recovers: bool = False) -> None:
        self._files.use(file)
        self._writer.switch(file.fd, first_position, recovers)
        self._in_flight.append(file)
        self._live.append(file)
        self._current = file
        self._room_bytes = file.size_bytes - FILE_HEADER_BYTES - _ENTRY_OVERHEAD_BYTES
        self._prepare_below_bytes = self._room_bytes // 2
        if len(self._live) > _PATIENT_FILES:
            self._relieve(self._live[0].pins.copy())  # type: ignore[arg-type]

    def _drain_backlog(self) -> None:
        """Submit what waits, as far as there are files for it."""
        while self._backlog and self._problem is None:
            owner, batch, end_offset = self._backlog[0]
            needed = len(batch) + _ENTRY_OVERHEAD_BYTES
            if needed > self._room_bytes:
                spare = self._spare
                if spare is None or spare.size_bytes < needed + FILE_HEADER_BYTES + _ENTRY_OVERHEAD_BYTES:
                    if not self._preparing:
                        self._prepare(needed + FILE_HEADER_BYTES + _ENTRY_OVERHEAD_BYTES)
                    return
                self._spare = None
                self._use(spare)
            self._backlog.popleft()
            self._submit(owner, batch, end_offset, needed)

    def _prepare(self, size_bytes: int) -> None:
        self._preparing = True
        self._tasks.start(self._prepare_spare(size_bytes), "prepare")

    async def _prepare_spare(self, size_bytes: int) -> None:
        outgrown, self._spare = self._spare, None
        if outgrown is not None:
            await asyncio.to_thread(self._files.remove, outgrown)
        failures = self._failures
        for wait_ms in backoff_ms(limit_ms=1_000):
            try:
                spare = await asyncio.to_thread(self._files.create, size_bytes)
                # Files are in the order of their names: one from before a failure may not follow a newer one.
                if failures == self._failures:
                    self._spare = spare
                else:
                    await asyncio.to_thread(self._files.remove, spare)
                break
            except Exception as problem:  # also a bug's: whoever waits for the file has to hear of it
                if self._backlog:
                    self._fail(problem)
                    self._settle_failures()
                    break
                _log.warning("no spare WAL file yet: %s", problem, exc_info=_is_bug(problem))
            await self._clock.sleep_ms(wait_ms)
        self._preparing = False
        self._drain_backlog()
        self._writer.kick()

    def _on_completions(self) -> None:
        try:
            os.eventfd_read(self._notify_fd)
        except BlockingIOError:
            pass
        durable: dict[WalOwner, int] = {}
        has_switched = False
        now_s = stopwatch_s()
        completed = self._writer.completed()
        if completed and not self._is_gone and any(_is_removed(file) for file in {self._written, self._current}):
            self.give_up("the WAL's files were removed")
        for count, result in completed:
            error = errno.ESTALE if self._is_gone else result
            size_bytes = 0
            for _ in range(count):
                entry = self._in_flight.popleft()
                if isinstance(entry, WalFile):
                    has_switched = True
                    self._written = entry
                    if error == 0 and entry is self._mending:
                        _log.warning("the WAL is writable again")
                        self._problem = None
                elif error == 0:
                    durable[entry[0]] = entry[2]
                    size_bytes += len(entry[1])
                else:
                    self._failed_owners[entry[0]] = None
            self._note_reported(count, size_bytes, now_s)
            if error and self._problem is None:
                self._fail(OSError(error, os.strerror(error)))
        # First what is durable: who is told of a loss takes back everything that it was not told to be durable.
        for owner, end_offset in durable.items():
            try:
                owner.durable(end_offset)
            except Exception:  # a bug, which must not be paid for by all others that were synced with it
                _log.exception("%s could not be told that it is durable up to %d", owner.partition, end_offset)
        self._settle_failures()
        if has_switched and self._retires_when_switched:
            self._retires_when_switched = False
            self._retire_unneeded()

    def _note_reported(self, count: int, size_bytes: int, now_s: float) -> None:
        """A group is of one kick or several; a change of files, or a failure, has no bytes and is no sync."""
        self._completed += count
        if size_bytes and self._kicks:
            self.measures.synced(now_s - self._kicks[0][1], count, size_bytes)
        while self._kicks and self._kicks[0][0] <= self._completed:
            self._kicks.popleft()

    def _fail(self, problem: Exception) -> None:
        """Refuse appends until a new file is in use."""
        if self._problem is not None:
            return
        _log.error(
            "the WAL cannot be written: %s; appends are refused until a new file can be",
            problem,
            exc_info=_is_bug(problem),
        )
        reason = problem.strerror if isinstance(problem, OSError) else "no file could be made"
        self._problem = f"the WAL cannot be written: {reason}"
        self._failures += 1
        self.measures.failures += 1
        if self._written is not None:
            self._written.has_failed = True
        if not self._closed and not self._is_gone and not self._is_reopening:
            self._is_reopening = True
            self._tasks.start(self._reopen(), "reopen")
        spare, self._spare = self._spare, None
        if spare is not None:
            self._files.remove(spare)

    def _settle_failures(self) -> None:
        """Tell owners of lost batches, once they were told of all that was written before those."""
        if self._problem is None or self._in_flight:
            return
        for owner, _, _ in self._backlog:
            self._failed_owners[owner] = None
        self._backlog.clear()
        owners, self._failed_owners = self._failed_owners, {}
        for owner in owners:
            owner.not_durable(StorageUnavailable(self._problem))
            self._unpin_lost(owner)
        if owners:
            self._retire_unneeded()

    def _unpin_lost(self, owner: WalOwner) -> None:
        """Batches that were lost keep no file: their offsets may never be reached again."""
        for file in self._live:
            if file.pins.get(owner, 0) > owner.high_watermark:
                if owner.high_watermark > owner.committed_end:
                    file.pins[owner] = owner.high_watermark
                else:
                    del file.pins[owner]

    async def _reopen(self) -> None:
        """Until a file works. There is one of these at a time: of two, the older file could be used after the newer."""
        for wait_ms in backoff_ms(first_ms=200):
            await self._clock.sleep_ms(wait_ms)
            if self._problem is None or self._is_gone:
                break
            if self._in_flight:
                continue
            try:
                file = await asyncio.to_thread(self._files.create)
            except Exception as problem:  # also a bug's: nobody else tries
                _log.warning("still no new WAL file: %s", problem, exc_info=_is_bug(problem))
                continue
            self._mending = file
            self._use(file, recovers=True)
            self._writer.kick()
        self._is_reopening = False


def _is_removed(file: WalFile | None) -> bool:
    """One that cannot be looked at, because a file server does not know it any more, is as good as removed."""
    try:
        return file is not None and os.fstat(file.fd).st_nlink == 0
    except OSError:
        return True


def _is_bug(problem: Exception) -> bool:
    return not isinstance(problem, OSError)
