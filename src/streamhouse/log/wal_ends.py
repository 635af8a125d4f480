"""Which WAL files in use are the oldest and the newest, noted beside them: the two that nothing else would miss.

A file that is gone from the middle shows by the positions of its neighbours. Without the first or the last one, what is
left would be taken for the whole. A file that the note names is there, under its own name or as a spare."""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

WAL_SUFFIX = ".wal"
SPARE_SUFFIX = ".spare"
_NAME = "ends"
_NOTE = Struct(">8sQQQ")
_CRC = Struct(">I")
_MAGIC = b"SHENDS\x00\x01"
# Two notes in sectors of their own, written in turn: one that a crash cuts short leaves the other.
_SLOTS = (0, 512)


class _Note(NamedTuple):
    generation: int
    oldest: int
    newest: int


class WalEnds:
    """The note of one running WAL. It is written in place, so that a full disk does not stop it."""

    def __init__(self, directory: Path) -> None:
        self._fd = os.open(directory / _NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        note = _read(os.pread(self._fd, _SLOTS[-1] + _NOTE.size + _CRC.size, 0))
        self._generation = note.generation if note else 0
        if note is None:  # take the space now
            self.write(0, 0)
            self.write(0, 0)

    def write(self, oldest: int, newest: int) -> None:
        """Certain after a crash of the process; of the machine, once it is synced."""
        self._generation += 1
        note = _NOTE.pack(_MAGIC, self._generation, oldest, newest)
        os.pwrite(self._fd, note + _CRC.pack(crc32c(note)), _SLOTS[self._generation % len(_SLOTS)])

    def sync(self) -> None:
        os.fdatasync(self._fd)

    def close(self) -> None:
        os.close(self._fd)


def missing_end(directory: Path) -> str | None:
    """The name of a file that should be the first or the last of the WAL and is not there."""
    try:
        note = _read((directory / _NAME).read_bytes())
    except FileNotFoundError:  # written by a version that made no note
        return None
    for sequence in (note.oldest, note.newest) if note else ():
        names = [wal_path(directory, sequence, suffix) for suffix in (WAL_SUFFIX, SPARE_SUFFIX)]
        if sequence and not any(name.exists() for name in names):
            return names[0].name
    return None


def wal_path(directory: Path, sequence: int, suffix: str = WAL_SUFFIX) -> Path:
    return directory / f"{sequence:020d}{suffix}"


def _read(content: bytes) -> _Note | None:
    notes = []
    for at in _SLOTS:
        note, crc = content[at : at + _NOTE.size], content[at + _NOTE.size : at + _NOTE.size + _CRC.size]
        if len(crc) == _CRC.size and crc == _CRC.pack(crc32c(note)):
            notes.append(_Note(*_NOTE.unpack(note)[1:]))
    return max(notes, default=None)
