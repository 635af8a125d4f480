"""What a WAL's files hold, read without changing them: entries, marks, and where and why the valid part stops."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from struct import Struct

from streamhouse.format.wal_entry import FILE_HEADER_BYTES, MARK_BYTES, WalBatch, decode_file_header, scan_file
from streamhouse.model.errors import CorruptData, NotFound, StorageUnavailable

_POSITION = Struct(">Q")


class Ending(Enum):
    """What follows a file's last valid entry."""

    FULL = "full"
    UNUSED = "unused space"
    TORN = "torn tail"
    DAMAGED = "damaged"
    UNWRITTEN = "never written"


@dataclass(frozen=True, slots=True, kw_only=True)
class WalFileReport:
    """One file; `end` is the byte where its valid entries stop. Positions count through the WAL as a whole."""

    path: Path
    size_bytes: int
    first_position: int
    end: int
    batches: tuple[WalBatch, ...]
    mark_positions: tuple[int, ...]
    ending: Ending
    problem: str | None = None

    @property
    def end_position(self) -> int:
        return self.first_position + self.end

    @property
    def is_sound(self) -> bool:
        return self.ending is not Ending.DAMAGED


def inspect_wal(paths: Sequence[Path]) -> list[WalFileReport]:
    """The files in WAL order, each also held against where the next one starts."""
    reports = [inspect_wal_file(path) for path in paths]
    for index, report in enumerate(reports):
        following = next((later for later in reports[index + 1 :] if later.ending is not Ending.UNWRITTEN), None)
        is_written = report.ending is not Ending.UNWRITTEN
        if is_written and following is not None and following.first_position > report.end_position and report.is_sound:
            reports[index] = replace(
                report,
                ending=Ending.DAMAGED,
                problem=f"{following.path.name} goes on at position {following.first_position}, so entries are missing",
            )
    return reports


def inspect_wal_file(path: Path) -> WalFileReport:
    try:
        with open(path, "rb") as file:
            size_bytes = file.seek(0, 2)
            if size_bytes < FILE_HEADER_BYTES:
                return _unwritten(path, size_bytes)
            memory = mmap.mmap(file.fileno(), size_bytes, prot=mmap.PROT_READ)
    except FileNotFoundError:
        raise NotFound(f"there is no file {str(path)!r}") from None
    except (OSError, ValueError) as problem:
        raise StorageUnavailable(f"cannot read {str(path)!r}: {problem}") from problem
    try:
        return _inspect(path, memory)
    finally:
        memory.close()


def _inspect(path: Path, memory: mmap.mmap) -> WalFileReport:
    header = memory[:FILE_HEADER_BYTES]
    if header == bytes(FILE_HEADER_BYTES):
        return _unwritten(path, len(memory))
    try:
        first_position = decode_file_header(header)
    except CorruptData as problem:
        raise CorruptData(f"{path.name}: {problem.message}", hint="is it a WAL file?") from None
    with memoryview(memory) as view:
        found = scan_file(view, first_position)
    ending = Ending.DAMAGED if found.damaged else _ending(memory, found.end, found.end_position)
    return WalFileReport(
        path=path,
        size_bytes=len(memory),
        first_position=first_position,
        end=found.end,
        batches=tuple(found.entries),
        mark_positions=_mark_positions(found.entries, first_position, found.end),
        ending=ending,
        problem=f"the entry at byte {found.end} is not valid, but later ones were synced" if found.damaged else None,
    )


def _unwritten(path: Path, size_bytes: int) -> WalFileReport:
    return WalFileReport(
        path=path,
        size_bytes=size_bytes,
        first_position=0,
        end=0,
        batches=(),
        mark_positions=(),
        ending=Ending.UNWRITTEN,
    )


def _ending(memory: mmap.mmap, end: int, end_position: int) -> Ending:
    """An entry that states this very place was meant to be here; anything else is what the file held before."""
    if len(memory) - end < MARK_BYTES:
        return Ending.FULL
    (stated,) = _POSITION.unpack_from(memory, end)
    return Ending.TORN if stated == end_position else Ending.UNUSED


def _mark_positions(batches: Sequence[WalBatch], first_position: int, end: int) -> tuple[int, ...]:
    """Valid entries follow one another without gaps, so what is between batches is marks."""
    marks: list[int] = []
    at = FILE_HEADER_BYTES
    for batch in batches:
        marks += range(at, batch.position - first_position, MARK_BYTES)
        at = batch.end
    marks += range(at, end, MARK_BYTES)
    return tuple(first_position + at for at in marks)
