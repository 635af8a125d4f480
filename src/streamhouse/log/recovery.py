"""What the local WAL held at the last stop, found again: every batch that may have been acknowledged.

No content is changed, so a crash during recovery changes nothing. A torn tail, which was never acknowledged, is left
out; damage anywhere before it stops the node."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from streamhouse.format.wal_entry import FILE_HEADER_BYTES, WalBatch, decode_file_header, scan_file
from streamhouse.log.wal_ends import SPARE_SUFFIX
from streamhouse.log.wal_files import WalFile, wal_paths
from streamhouse.model.errors import CorruptData


@dataclass(slots=True)
class _Span:
    """A file that was in use, and the WAL position of its first byte."""

    file: WalFile
    memory: mmap.mmap
    first: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The files that are still there, oldest first, and the position where the WAL goes on."""

    files: list[WalFile]
    end_position: int


def recover(directory: Path, replay: Callable[[WalBatch, memoryview, WalFile], None]) -> Recovered:
    """Hand every batch to `replay`, in the order written. Blocking."""
    with ExitStack() as opened:
        spans = _open_spans(directory, opened)
        end_position = 0
        for index, span in enumerate(spans):
            following = spans[index + 1].first if index + 1 < len(spans) else None
            end_position = _replay_span(span, following, replay)
        opened.pop_all()  # the files stay open: whoever asked owns them now
    for span in spans:
        span.memory.close()
    return Recovered([span.file for span in spans], end_position)


def _replay_span(span: _Span, following: int | None, replay: Callable[[WalBatch, memoryview, WalFile], None]) -> int:
    """Where the entries of the file end that count; `following` is where the next file starts."""
    memory = memoryview(span.memory)
    result = scan_file(memory, span.first)
    # A file given up after a failed sync may hold, beyond what was reported durable, entries that failed; the
    # next file starts where the durable ones end.
    if result.damaged or (following is not None and result.end_position < following):
        raise CorruptData(
            f"WAL file {span.file.path.name} is damaged at byte {result.end}, before entries that were synced",
            hint=f"look at it with `streamhouse wal show {span.file.path}`; restore it from a copy if you have one",
        )
    end_position = result.end_position if following is None else following
    for batch in result.entries:
        if batch.position < end_position:
            replay(batch, memory[batch.start : batch.end], span.file)
    memory.release()
    return end_position


def _open_spans(directory: Path, opened: ExitStack) -> list[_Span]:
    """The files in use. A file made or renamed for reuse, but not yet written, is put aside, to be removed."""
    spans: list[_Span] = []
    for sequence, path in wal_paths(directory):
        with ExitStack() as unless_used:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            unless_used.callback(os.close, fd)
            size_bytes = os.fstat(fd).st_size
            if size_bytes < FILE_HEADER_BYTES:
                path.rename(path.with_suffix(SPARE_SUFFIX))
                continue
            memory = mmap.mmap(fd, size_bytes, prot=mmap.PROT_READ)
            first = _first_position(memory, path)
            if first is None:
                memory.close()
                path.rename(path.with_suffix(SPARE_SUFFIX))
                continue
            if spans and first < spans[-1].first:
                memory.close()
                raise CorruptData(
                    f"WAL file {path.name} starts before {spans[-1].file.path.name}, which its name comes after",
                    hint="this is a mixture of two WALs; restore the directory from a copy if you have one",
                )
            opened.push(unless_used.pop_all())
        spans.append(_Span(WalFile(sequence, path, fd, size_bytes), memory, first))
    return spans


def _first_position(memory: mmap.mmap, path: Path) -> int | None:
    header = memory[:FILE_HEADER_BYTES]
    if header == bytes(FILE_HEADER_BYTES):
        return None
    try:
        return decode_file_header(header)
    except CorruptData as problem:
        raise CorruptData(
            f"WAL file {path.name}: {problem.message}", hint=f"look at it with `streamhouse wal show {path}`"
        ) from None
