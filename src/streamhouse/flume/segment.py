"""A segment's file, read record by record. Segments do not change once they are there, so this is safe beside a node.

What the document's segment is to its broker is shared between two kinds of files here: the write-ahead log takes what
is appended, and segments of the object store, which these are, hold it from then on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Self

from streamhouse.flume.record import Record
from streamhouse.format.row_reading import CLIENT_LIMITS, read_rows
from streamhouse.format.segment import decode_block
from streamhouse.format.segment_index import (
    FOOTER_BYTES,
    HEADER_BYTES,
    SUFFIX_HINT_BYTES,
    decode_footer,
    decode_header,
    decode_index,
    index_in,
)
from streamhouse.model.errors import CorruptData, NotFound, OffsetOutOfRange, StorageUnavailable


class Segment:
    """`with Segment("…/00000000000000000000-….strm") as segment: segment.read(5)`

    It reads the index at once and blocks when they are asked for, each checked against its CRC."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._fd = -1
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            self.size_bytes = os.fstat(self._fd).st_size
        except FileNotFoundError:
            raise NotFound(f"there is no file {str(path)!r}") from None
        except OSError as problem:
            raise StorageUnavailable(f"cannot open {str(path)!r}: {problem.strerror}") from problem
        try:
            self._read_index()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @property
    def base_offset(self) -> int:
        return self._footer.base_offset

    @property
    def next_offset(self) -> int:
        """The offset behind its last."""
        return self._footer.end_offset

    @property
    def record_count(self) -> int:
        """Fewer than its offsets where compaction removed some."""
        return self._footer.record_count

    @property
    def index(self) -> list[tuple[int, int]]:
        """The sparse index: the first offset of each block, and the byte where the block starts."""
        return list(zip(self._index.first_offsets, self._index.positions, strict=False))

    def read(self, offset: int) -> Record:
        """OffsetOutOfRange if it is not in this segment, or was removed by compaction."""
        if not self.base_offset <= offset < self.next_offset:
            raise OffsetOutOfRange(f"{offset} is not between {self.base_offset} and {self.next_offset - 1}")
        for record in self._block_records(self._index.block_of(offset), offset, max_records=1):
            if record.offset == offset:
                return record
        raise OffsetOutOfRange(f"there is no record at {offset}: compaction has removed it")

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, start_offset: int = 0) -> Iterator[Record]:
        """From an offset on, a block at a time."""
        for block in range(self._index.block_of(start_offset), self._index.block_count):
            yield from self._block_records(block, start_offset)

    def recover(self) -> int:
        """Read and check everything, and give the next offset. There is nothing to rebuild: a segment is there as a
        whole or not at all."""
        count = sum(1 for _ in self.records(self.base_offset))
        if count != self.record_count:
            raise CorruptData(f"{self.path.name} holds {count} records, not the {self.record_count} that it declares")
        return self.next_offset

    def _read_index(self) -> None:
        decode_header(self._pread(0, min(HEADER_BYTES, self.size_bytes)))
        suffix = self._pread(max(0, self.size_bytes - max(SUFFIX_HINT_BYTES, FOOTER_BYTES)), self.size_bytes)
        self._footer = decode_footer(suffix, self.size_bytes)
        index = index_in(suffix, self._footer)
        self._index = decode_index(
            self._pread(self._footer.index_position, self._footer.index_end) if index is None else index, self._footer
        )

    def _block_records(self, block: int, start_offset: int, max_records: int = 2**63 - 1) -> Iterator[Record]:
        run = decode_block(self._pread(*self._index.positions[block : block + 2]), self._index, block)
        found = read_rows(run, start_offset, max_records=max_records, limits=CLIENT_LIMITS)
        while found.records:
            for row in found.records:
                yield Record(offset=row.offset, payload=row.value or b"")
            found = read_rows(run, found.next_offset, max_records=max_records, limits=CLIENT_LIMITS)

    def _pread(self, start: int, end: int) -> bytes:
        if self._fd < 0:
            raise StorageUnavailable(f"{self.path.name} was closed")
        try:
            data = os.pread(self._fd, end - start, start)
        except OSError as problem:
            raise StorageUnavailable(f"cannot read {self.path.name}: {problem.strerror}") from problem
        if len(data) < end - start:
            raise CorruptData(f"{self.path.name} ends at byte {start + len(data)}, before {end}")
        return data
