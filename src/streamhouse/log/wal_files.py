"""The files of a local WAL: made ahead of need, written over again when their entries are no longer needed."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from streamhouse.format.wal_entry import FILE_HEADER_BYTES

_SUFFIX = ".wal"
_SPARE_SUFFIX = ".spare"
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
    return sorted((int(path.stem), path) for path in directory.glob(f"*{_SUFFIX}") if path.stem.isdigit())


class WalFiles:
    """Makes, reuses and removes files. Making one blocks for long, and belongs in a worker thread."""

    def __init__(self, directory: Path, file_bytes: int) -> None:
        self._directory = directory
        self._file_bytes = file_bytes
        self._retired: list[WalFile] = []
        for left_over in directory.glob(f"*{_SPARE_SUFFIX}"):
            left_over.unlink()
        newest = max((sequence for sequence, _ in wal_paths(directory)), default=0)
        # Shared by the threads that make files: taking the next is one step.
        self._sequences = count(newest + 1)

    def create_first(self) -> WalFile:
        """A small one, made quickly, to start with."""
        return self._create(min(_FIRST_FILE_BYTES, self._file_bytes))

    def create(self, needed_bytes: int = 0) -> WalFile:
        """The next file, empty, of the usual size or what is needed."""
        return self._create(max(needed_bytes, self._file_bytes))

    def _create(self, size_bytes: int) -> WalFile:
        sequence = next(self._sequences)
        path = self._directory / f"{sequence:020d}{_SUFFIX}"
        if self._retired and size_bytes == self._file_bytes:
            file = self._reuse(self._retired.pop(), sequence, path)
        else:
            file = self._make(sequence, path, size_bytes)
        self._sync_directory()
        return file

    def retire(self, file: WalFile) -> None:
        """Take back the oldest file, whose entries nobody needs: it loses its name at once, so that what a crash
        leaves is always a WAL without holes, and is kept for reuse or removed."""
        spare = file.path.with_suffix(_SPARE_SUFFIX)
        os.rename(file.path, spare)
        file.path = spare
        if file.size_bytes == self._file_bytes and not file.has_failed and len(self._retired) < _KEPT_SPARES:
            self._retired.append(file)
        else:
            self.remove(file)

    def remove(self, file: WalFile) -> None:
        os.close(file.fd)
        file.path.unlink(missing_ok=True)

    def close(self) -> None:
        for file in self._retired:
            self.remove(file)
        self._retired.clear()

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
