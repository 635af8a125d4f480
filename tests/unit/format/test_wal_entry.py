"""WAL files: their bytes, and telling a torn tail from damage."""

from __future__ import annotations

import mmap
from pathlib import Path
from uuid import UUID

import pytest
from crc32c import crc32c

from format_samples.batches import batch
from format_samples.kernels import Kernel, both_kernels, using
from streamhouse.format.wal_entry import (
    ENTRY_HEADER_BYTES,
    FILE_HEADER_BYTES,
    MARK_BYTES,
    PREFIX_BYTES,
    ScanResult,
    WalBatch,
    decode_file_header,
    encode_entry_header,
    encode_file_header,
    encode_mark,
    entry_prefix,
    scan_file,
)
from streamhouse.model.errors import CorruptData

TOPICS = [UUID(int=1), UUID(int=2**100 + 7)]
FIRST = 5_000_000_000


class WalFile:
    """A WAL file as a writer would leave it."""

    def __init__(self, first_position: int = FIRST) -> None:
        self.first_position = first_position
        self.bytes = bytearray(encode_file_header(first_position))
        self.batches: list[WalBatch] = []

    def add(self, content: bytes, topic_id: UUID = TOPICS[0], partition: int = 0) -> WalFile:
        prefix = entry_prefix(topic_id, partition)
        position = self.first_position + len(self.bytes)
        self.bytes += encode_entry_header(position, prefix, content) + prefix
        start = len(self.bytes)
        self.bytes += content
        base_offset = int.from_bytes(content[:8], "big")
        end_offset = base_offset + int.from_bytes(content[23:27], "big") + 1
        self.batches.append(WalBatch(position, topic_id, partition, start, len(self.bytes), base_offset, end_offset))
        return self

    def mark(self) -> WalFile:
        self.bytes += encode_mark(self.first_position + len(self.bytes))
        return self


def scan(chosen: Kernel, content: bytes | bytearray | memoryview, first_position: int = FIRST) -> ScanResult:
    with using(chosen):
        return scan_file(content, first_position)


def groups(*sizes: int) -> WalFile:
    """One group of entries per size, a mark before each group but the first."""
    wal = WalFile()
    offset = 0
    for index, size in enumerate(sizes):
        if index:
            wal.mark()
        for _ in range(size):
            wal.add(batch(offset, count=2, records=bytes(range(200))), TOPICS[offset % 2], offset % 5)
            offset += 2
    return wal


def test_a_file_header_has_the_documented_bytes() -> None:
    header = encode_file_header(0x0102030405060708)
    assert len(header) == FILE_HEADER_BYTES == 32
    assert header[:16] == b"SHWAL\0\0\1" + bytes(range(1, 9))
    assert header[16:28] == bytes(12)
    assert header[28:] == crc32c(header[:28]).to_bytes(4, "big")
    assert decode_file_header(header + b"whatever") == 0x0102030405060708


def test_a_damaged_file_header_is_noticed_bit_by_bit() -> None:
    header = bytearray(encode_file_header(77))
    for bit in range(8 * FILE_HEADER_BYTES):
        header[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptData):
            decode_file_header(header)
        header[bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptData):
        decode_file_header(header[:31])


def test_an_entry_has_the_documented_bytes() -> None:
    content = batch(9, count=1)
    prefix = entry_prefix(TOPICS[1], 3)
    assert prefix == b"\x01" + TOPICS[1].bytes + b"\0\0\0\3"
    header = encode_entry_header(77, prefix, content)
    assert len(header) == ENTRY_HEADER_BYTES
    assert header[:12] == (77).to_bytes(8, "big") + (PREFIX_BYTES + len(content)).to_bytes(4, "big")
    assert header[12:] == crc32c(header[:12] + prefix + content[:21]).to_bytes(4, "big")


def test_a_mark_has_the_documented_bytes() -> None:
    mark = encode_mark(77)
    assert len(mark) == MARK_BYTES == 24
    assert mark[:12] == (77).to_bytes(8, "big") + (8).to_bytes(4, "big")
    assert mark[16:] == b"\0SHMARK1"
    assert mark[12:16] == crc32c(mark[:12] + mark[16:]).to_bytes(4, "big")


@both_kernels
def test_every_entry_is_found(chosen: Kernel) -> None:
    wal = groups(3, 1, 4)
    assert scan(chosen, wal.bytes) == (wal.batches, len(wal.bytes), FIRST + len(wal.bytes), False)
    assert scan(chosen, memoryview(wal.bytes)).entries == wal.batches


@both_kernels
def test_an_empty_file_has_no_entries(chosen: Kernel) -> None:
    header = encode_file_header(FIRST)
    for content in (header, header + bytes(10_000), header + b"\xff" * 10_000):
        assert scan(chosen, content) == ([], FILE_HEADER_BYTES, FIRST + FILE_HEADER_BYTES, False)


@both_kernels
def test_what_is_preallocated_after_the_tail_is_not_damage(chosen: Kernel) -> None:
    wal = groups(2, 2)
    result = scan(chosen, bytes(wal.bytes) + bytes(100_000))
    assert result == (wal.batches, len(wal.bytes), FIRST + len(wal.bytes), False)


@both_kernels
def test_what_a_recycled_file_held_before_is_recognised_by_its_position(chosen: Kernel) -> None:
    old = WalFile(FIRST - 1_000_000)
    for offset in range(50):
        old.mark().add(batch(offset))
    wal = groups(2)
    # The new tail ends exactly where an old entry starts: all that tells them apart is the position.
    old_starts = [entry.start - PREFIX_BYTES - ENTRY_HEADER_BYTES for entry in old.batches]
    for start in (start for start in old_starts if start >= len(wal.bytes)):
        recycled = bytes(wal.bytes) + bytes(start - len(wal.bytes)) + bytes(old.bytes[start:])
        result = scan(chosen, recycled)
        assert (result.entries, result.end, result.damaged) == (wal.batches, len(wal.bytes), False)


@both_kernels
def test_a_last_group_cut_anywhere_is_a_torn_tail(chosen: Kernel) -> None:
    wal = groups(2, 2)
    for size in range(FILE_HEADER_BYTES, len(wal.bytes)):
        for tail in (b"", bytes(300)):
            result = scan(chosen, bytes(wal.bytes[:size]) + tail)
            assert result.entries == [entry for entry in wal.batches if entry.end <= size]
            assert result.end <= size
            assert not result.damaged


@both_kernels
def test_a_hole_in_the_last_group_is_a_torn_tail_even_if_later_entries_reached_the_disk(chosen: Kernel) -> None:
    wal = groups(1, 3)
    hole = wal.batches[2]
    wal.bytes[hole.start + 100 : hole.end] = bytes(hole.end - hole.start - 100)
    result = scan(chosen, wal.bytes)
    assert (result.entries, result.damaged) == (wal.batches[:2], False)


@both_kernels
def test_any_flipped_bit_before_a_mark_is_damage(chosen: Kernel) -> None:
    wal = groups(2, 1)
    mark_at = wal.batches[1].end
    for at in range(FILE_HEADER_BYTES, mark_at):
        wal.bytes[at] ^= 1 << at % 8
        result = scan(chosen, wal.bytes)
        assert result.damaged, at
        assert result.entries == [entry for entry in wal.batches if entry.end <= at], at
        wal.bytes[at] ^= 1 << at % 8


@both_kernels
def test_any_flipped_bit_after_the_last_mark_is_a_torn_tail(chosen: Kernel) -> None:
    wal = groups(1, 2)
    mark_at = wal.batches[0].end
    for at in range(mark_at, len(wal.bytes)):
        wal.bytes[at] ^= 1 << at % 8
        result = scan(chosen, wal.bytes)
        assert not result.damaged, at
        assert result.entries == [entry for entry in wal.batches if entry.end <= at], at
        wal.bytes[at] ^= 1 << at % 8


@both_kernels
def test_a_marks_bytes_inside_a_records_value_are_not_a_mark(chosen: Kernel) -> None:
    wal = groups(1)
    wal.add(batch(9, records=encode_mark(3) * 30))
    wal.bytes[wal.batches[0].start + 70] ^= 1
    assert not scan(chosen, wal.bytes).damaged


@both_kernels
def test_a_mark_is_found_across_the_edges_of_the_search_windows(chosen: Kernel) -> None:
    window = 1024 * 1024
    bad_at = FILE_HEADER_BYTES
    for distance in range(window - 2 * MARK_BYTES, window + MARK_BYTES, 5):
        content = bytearray(encode_file_header(FIRST) + bytes(distance))
        content += encode_mark(FIRST + len(content))
        result = scan(chosen, content)
        assert (result.end, result.damaged) == (bad_at, True)


@both_kernels
@pytest.mark.parametrize("size", [0, 1, 7, 9, 81, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_a_size_that_no_entry_has_ends_the_scan(chosen: Kernel, size: int) -> None:
    head = (FIRST + FILE_HEADER_BYTES).to_bytes(8, "big") + size.to_bytes(4, "big")
    payload = bytes(200)
    crc = crc32c(head + payload[: min(size, 42)]).to_bytes(4, "big")
    assert scan(chosen, encode_file_header(FIRST) + head + crc + payload).entries == []


@both_kernels
@pytest.mark.parametrize("content", [b"", b"x", bytes(31)])
def test_a_buffer_smaller_than_a_file_header_has_no_entries(chosen: Kernel, content: bytes) -> None:
    assert scan(chosen, content).entries == []


@both_kernels
def test_a_mapped_file_is_scanned_in_place(chosen: Kernel, tmp_path: Path) -> None:
    wal = groups(5, 5)
    path = tmp_path / "wal"
    path.write_bytes(bytes(wal.bytes) + bytes(8_192))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        view = memoryview(mapped)
        assert scan(chosen, view).entries == wal.batches
        view.release()
