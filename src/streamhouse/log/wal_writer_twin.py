"""The WAL's writer thread in Python, for machines where the compiled one could not be built."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from streamhouse.format.batch import CRC_START
from streamhouse.format.wal_entry import (
    FILE_HEADER_BYTES,
    PREFIX_BYTES,
    encode_entry_header,
    encode_file_header,
    encode_mark,
)
from streamhouse.model.buffer import Buffer

_MAX_IOVECS = 1000


class _Entry(NamedTuple):
    prefix: bytes
    batch: Buffer


class _Switch(NamedTuple):
    fd: int
    first_position: int
    recovers: bool


class WalWriter:
    """Group commit: while one group is written and synced, the next one gathers.

    After each group (and each file switch) the thread notes a completion and rings `notify_fd`, an eventfd. After a
    failure every entry fails with the same error until a new file is switched to: an fsync is never tried again."""

    def __init__(self, notify_fd: int) -> None:
        self._notify_fd = notify_fd
        self._pending: list[_Entry | _Switch] = []
        self._incoming: list[_Entry | _Switch] = []
        self._completions: list[tuple[int, int]] = []
        self._wake = threading.Condition()
        self._closing = False
        self._fd = -1
        self._file_first_position = 0
        self._position = 0
        self._failed_with = errno.EIO
        self._thread = threading.Thread(target=self._run, name="wal-writer", daemon=True)
        self._thread.start()

    def add(self, prefix: bytes, batch: Buffer) -> None:
        """Gather an entry for the next `kick`. The batch's memory must not change until it is completed."""
        if len(prefix) != PREFIX_BYTES:
            raise ValueError("a prefix has 21 bytes")
        if len(batch) < CRC_START:
            raise ValueError("a batch has a header")
        self._pending.append(_Entry(prefix, batch))

    def switch(self, fd: int, first_position: int, recovers: bool = True) -> None:
        """Write what follows to another file, from this position of the WAL on or, if that is further, from where
        the last successful group ended. Counts as one entry of its own when completed. After a failure only a switch
        that `recovers` takes effect: others belong to what failed."""
        self._pending.append(_Switch(fd, first_position, recovers))

    def kick(self) -> None:
        """Hand what was gathered to the thread."""
        if self._pending:
            with self._wake:
                self._incoming += self._pending
                self._wake.notify()
            self._pending = []

    def completed(self) -> list[tuple[int, int]]:
        """(number of entries, 0 or errno) of each group since the last call, in order."""
        with self._wake:
            done, self._completions = self._completions, []
        return done

    def close(self) -> None:
        """Finish what was handed over and end the thread."""
        self.kick()
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        unmarked = False
        while True:
            with self._wake:
                idle = not self._incoming
            if idle and unmarked and not self._failed_with:
                self._mark_synced()
                unmarked = False
            with self._wake:
                while not self._incoming and not self._closing:
                    self._wake.wait()
                gathered, self._incoming = self._incoming, []
            if not gathered:
                return
            self._process(gathered)
            unmarked = True

    def _process(self, gathered: list[_Entry | _Switch]) -> None:
        group: list[_Entry] = []
        for item in gathered:
            if isinstance(item, _Switch):
                self._finish_group(group)
                group = []
                if item.recovers or not self._failed_with:
                    self._failed_with = self._attempt(partial(self._switch_file, item))
                self._complete(1)
            else:
                group.append(item)
        self._finish_group(group)

    def _finish_group(self, group: list[_Entry]) -> None:
        if group:
            if not self._failed_with:
                self._failed_with = self._attempt(partial(self._write_group, group))
            self._complete(len(group))

    @staticmethod
    def _attempt(action: Callable[[], object]) -> int:
        try:
            action()
        except OSError as problem:
            return problem.errno or errno.EIO
        return 0

    def _write_group(self, group: list[_Entry]) -> None:
        position = self._position
        parts: list[Buffer] = [encode_mark(position)]
        position += len(parts[0])
        for prefix, batch in group:
            header = encode_entry_header(position, prefix, batch)
            parts += (header, prefix, batch)
            position += len(header) + len(prefix) + len(batch)
        self._write_all(parts, self._file_offset(self._position))
        os.fdatasync(self._fd)
        self._position = position

    def _switch_file(self, target: _Switch) -> None:
        self._fd = target.fd
        self._position = max(self._position, target.first_position)
        self._file_first_position = self._position
        self._write_all([encode_file_header(self._file_first_position)], 0)
        self._position += FILE_HEADER_BYTES

    def _mark_synced(self) -> None:
        """Say on disk that all before here is synced. Not synced itself: if it is lost, nothing is."""
        mark = encode_mark(self._position)
        self._attempt(partial(os.pwrite, self._fd, mark, self._file_offset(self._position)))

    def _file_offset(self, position: int) -> int:
        return position - self._file_first_position

    def _write_all(self, parts: list[Buffer], at: int) -> None:
        for start in range(0, len(parts), _MAX_IOVECS):
            vectors: list[Buffer] = parts[start : start + _MAX_IOVECS]
            while vectors:
                written = os.pwritev(self._fd, vectors, at)
                at += written
                while vectors and written >= len(vectors[0]):
                    written -= len(vectors.pop(0))
                if written:
                    vectors[0] = memoryview(vectors[0])[written:]

    def _complete(self, entries: int) -> None:
        with self._wake:
            self._completions.append((entries, self._failed_with))
        os.eventfd_write(self._notify_fd, 1)
