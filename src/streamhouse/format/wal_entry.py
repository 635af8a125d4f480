"""Entries of the local WAL: their bytes, and the scan that finds where a file's valid entries stop."""

from __future__ import annotations

from struct import Struct
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

from streamhouse.format import kernel
from streamhouse.format.batch import CRC_START
from streamhouse.format.wal_layout import (
    BATCH_KIND,
    ENTRY_HEADER_BYTES,
    FILE_HEADER_BYTES,
    FILE_MAGIC,
    MARK_BYTES,
    MARK_PAYLOAD,
    PREFIX_BYTES,
    WalBatch,
)
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData

__all__ = [
    "ENTRY_HEADER_BYTES",
    "FILE_HEADER_BYTES",
    "MARK_BYTES",
    "PREFIX_BYTES",
    "ScanResult",
    "WalBatch",
    "decode_file_header",
    "encode_entry_header",
    "encode_file_header",
    "encode_mark",
    "entry_prefix",
    "scan_file",
]

_FILE_HEADER = Struct(">8sQ12xI")
_PREFIX = Struct(">B16si")
_POSITION_SIZE = Struct(">QI")
_CRC = Struct(">I")
_SEARCH_BYTES = 1024 * 1024
_CRC_AT = FILE_HEADER_BYTES - _CRC.size


class ScanResult(NamedTuple):
    """What a WAL file holds; `end` is where its valid entries stop, `end_position` the same in the WAL as a whole."""

    entries: list[WalBatch]
    end: int
    end_position: int
    damaged: bool


def encode_file_header(first_position: int) -> bytes:
    """The start of a file whose first byte is at `first_position` of the WAL; the header counts as well."""
    header = bytearray(_FILE_HEADER.pack(FILE_MAGIC, first_position, 0))
    _CRC.pack_into(header, _CRC_AT, crc32c(memoryview(header)[:_CRC_AT]))
    return bytes(header)


def decode_file_header(buf: Buffer) -> int:
    """The WAL position of the file's first byte."""
    if len(buf) < FILE_HEADER_BYTES:
        raise CorruptData(f"a WAL file of {len(buf)} bytes is smaller than its header")
    magic, first_position, crc = _FILE_HEADER.unpack_from(buf)
    if magic != FILE_MAGIC:
        raise CorruptData("the file does not start like a WAL file of this version")
    if crc32c(memoryview(buf)[:_CRC_AT]) != crc:
        raise CorruptData("the WAL file's header does not match its CRC")
    return int(first_position)


def entry_prefix(topic_id: UUID, partition: int) -> bytes:
    """What comes between an entry's header and its batch; one per partition, made once."""
    return _PREFIX.pack(BATCH_KIND, topic_id.bytes, partition)


def encode_entry_header(position: int, prefix: bytes, batch: Buffer) -> bytes:
    """The header of the entry `header + prefix + batch`, whose first byte is at `position` of the WAL."""
    head = _POSITION_SIZE.pack(position, PREFIX_BYTES + len(batch))
    # The batch's own CRC protects the rest, and is itself protected here.
    return head + _CRC.pack(crc32c(memoryview(batch)[:CRC_START], crc32c(prefix, crc32c(head))))


def encode_mark(position: int) -> bytes:
    """A whole entry that says: everything before `position` was synced."""
    head = _POSITION_SIZE.pack(position, len(MARK_PAYLOAD))
    return head + _CRC.pack(crc32c(MARK_PAYLOAD, crc32c(head))) + MARK_PAYLOAD


def scan_file(buf: Buffer, first_position: int) -> ScanResult:
    """Every batch of a WAL file up to the first entry that is not valid.

    Files are preallocated and recycled, so something always follows the last entry. A valid mark further on says
    that what comes before it had been synced: then the bad entry is damage, otherwise the torn tail of a crash.
    """
    entries, end = kernel.scan_entries(buf, first_position)
    return ScanResult(entries, end, first_position + end, _mark_follows(buf, first_position, end))


def _mark_follows(buf: Buffer, first_position: int, end: int) -> bool:
    view = memoryview(buf)
    # A window at a time: a view of a mapped file cannot be searched, and copying all of it would be large.
    for window_start in range(end, len(view), _SEARCH_BYTES):
        window = bytes(view[window_start : window_start + _SEARCH_BYTES + MARK_BYTES])
        found = window.find(MARK_PAYLOAD, ENTRY_HEADER_BYTES)
        while found >= 0:
            start = found - ENTRY_HEADER_BYTES
            if window[start : start + MARK_BYTES] == encode_mark(first_position + window_start + start):
                return True
            found = window.find(MARK_PAYLOAD, found + 1)
    return False
