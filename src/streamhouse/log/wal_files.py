"""The files of a local WAL: made ahead of need, written over again when their entries are no longer needed."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from threading import Lock

from streamhouse.format.wal_entry import FILE_HEADER_BYTES
from streamhouse.log.wal_ends import SPARE_SUFFIX, WAL_SUFFIX, WalEnds, wal_path
from streamhouse.runtime.anchor import Anchor

_ZEROS = bytes(1024 * 1024)
_KEPT_SPARES = 2
_FIRST_FILE_BYTES = 4 * 1024 * 1024


@dataclass(slots=True, eq=False)
class WalFile:
    """One file and, for each owner with entries in it, where the newest of them ends."""

    sequence: int
    path: Path
    fd: int
    size_bytes: int
    pins: dict[object, int] = field(default_factory=dict)
    has_failed: bool = False


def wal_paths(directory: Path) -> list[tuple[int, Path]]:
    """The WAL's files, oldest first."""
    return sorted((int(path.stem), path) for path in directory.glob(f"*{WAL_SUFFIX}") if path.stem.isdigit())


class WalFiles:
    """Makes, reuses and removes files. Making one blocks for long, and belongs in a worker thread.

    A file that was in use goes by a rename, and for good only when the note of the oldest and newest file (`WalEnds`)
    is synced without it."""

    def __init__(self, directory: Path, file_bytes: int) -> None:
        self._directory = directory
        self._file_bytes = file_bytes
        self._anchor = Anchor(directory)
        self._lock = Lock()
        self._ends = WalEnds(directory)
        self._has_begun = False
        self._in_use: set[int] = set()
        self._retired: list[WalFile] = []
        """For reuse."""
        self._discarded: list[Path] = sorted(directory.glob(f"*{SPARE_SUFFIX}"))
        names = (path.stem for suffix in (WAL_SUFFIX, SPARE_SUFFIX) for path in directory.glob(f"*{suffix}"))
        # Shared by the threads that make files: taking the next is one step.
        self._sequences = count(max((int(name) for name in names if name.isdigit()), default=0) + 1)

    def create_first(self, recovered: Iterable[WalFile] = ()) -> WalFile:
        """A small one, made quickly, to start with, behind those that were found."""
        self._in_use.update(file.sequence for file in recovered)
        self._discarded = sorted(self._directory.glob(f"*{SPARE_SUFFIX}"))
        return self._create(min(_FIRST_FILE_BYTES, self._file_bytes))

    def create(self, needed_bytes: int = 0) -> WalFile:
        """The next file, empty, of the usual size or what is needed."""
        return self._create(max(needed_bytes, self._file_bytes))

    def _create(self, size_bytes: int) -> WalFile:
        if not self._anchor.is_there:
            raise FileNotFoundError(errno.ENOENT, "the WAL's directory is gone")
        self._has_begun = True
        reused = self._clear_away(keeps_one=size_bytes == self._file_bytes)
        sequence = next(self._sequences)
        path = wal_path(self._directory, sequence)
        file = reused
        try:
            file = self._make(sequence, path, size_bytes) if reused is None else self._reuse(reused, sequence, path)
            self._sync_directory()
        except OSError:
            if file is not None:
                self.remove(file)
            raise
        return file

    def use(self, file: WalFile) -> None:
        """Entries will go to this file: from now on it is missed if it is gone."""
        with self._lock:
            self._in_use.add(file.sequence)
            # A note that cannot be written may miss a file that somebody takes away, and is no reason to stop writing.
            with suppress(OSError):
                self._note_ends()

    def retire(self, file: WalFile) -> None:
        """Take back the oldest file, whose entries nobody needs: it loses its name at once, so that what a crash
        leaves is always a WAL without holes, and is kept for reuse or removed."""
        with self._lock:
            self._in_use.discard(file.sequence)
            self._note_ends()
            spare = file.path.with_suffix(SPARE_SUFFIX)
            os.rename(file.path, spare)
            file.path = spare
            if file.size_bytes == self._file_bytes and not file.has_failed and len(self._retired) < _KEPT_SPARES:
                self._retired.append(file)
            else:
                os.close(file.fd)
                self._discarded.append(spare)

    def remove(self, file: WalFile) -> None:
        """Give up a file that nobody uses. If it cannot go now, it goes before the next one is made."""
        try:
            os.close(file.fd)
            file.path.unlink(missing_ok=True)
        except OSError:
            with self._lock:
                self._discarded.append(file.path)

    def close(self) -> None:
        for file in self._retired:
            os.close(file.fd)
            self._discarded.append(file.path)
        self._retired.clear()
        if self._has_begun:  # else recovery came to nothing, and what it found stays as noted
            with suppress(OSError):  # what is left is removed by the next one
                self._clear_away(keeps_one=False)
        self._ends.close()

    def _note_ends(self) -> None:
        self._ends.write(min(self._in_use, default=0), max(self._in_use, default=0))

    def _clear_away(self, *, keeps_one: bool) -> WalFile | None:
        """Remove what is out of use, once that is noted for good; gives back one of the files for reuse, if asked.

        Threads may be at it together: what one takes out of the lists is its own, until it fails and puts it back."""
        with self._lock:
            self._note_ends()
            discarded, self._discarded = self._discarded, []
            kept = self._retired.pop(0) if keeps_one and self._retired else None
        try:
            self._ends.sync()
            while discarded:
                discarded[-1].unlink(missing_ok=True)
                discarded.pop()
        except OSError:
            with self._lock:
                self._discarded += discarded
                if kept is not None:
                    self._retired.insert(0, kept)
            raise
        return kept

    def _reuse(self, file: WalFile, sequence: int, path: Path) -> WalFile:
        # Without a header the old content means nothing; with the old one, its positions are before all others.
        os.pwrite(file.fd, bytes(FILE_HEADER_BYTES), 0)
        os.fdatasync(file.fd)
        os.rename(file.path, path)
        return WalFile(sequence, path, file.fd, file.size_bytes)

    def _make(self, sequence: int, path: Path, size_bytes: int) -> WalFile:
        """Written through once: an fdatasync is cheaper where it has no size and no extents to note."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for start in range(0, size_bytes, len(_ZEROS)):
                _write_fully(fd, _ZEROS[: size_bytes - start], start)
            os.fsync(fd)
        except OSError:
            os.close(fd)
            path.unlink(missing_ok=True)
            raise
        return WalFile(sequence, path, fd, size_bytes)

    def _sync_directory(self) -> None:
        fd = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _write_fully(fd: int, data: bytes, at: int) -> None:
    while data:
        written = os.pwrite(fd, data, at)
        data, at = data[written:], at + written
