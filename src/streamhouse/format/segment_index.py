"""The tail of a STRM segment: a fixed footer and an index of blocks, which say what to read for a fetch."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from streamhouse.format.varint import append_uvarint, append_varint, read_uvarint, read_varint
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData, Unsupported

MAGIC = b"STRM"
VERSION = 1
REPLACEMENT_VERSION = 2
"""Of a segment with a lineage: one that was written to take the place of others."""
HEADER_BYTES = 8

_HEADER = Struct(">4sH2x")
_HEADERS = {_HEADER.pack(MAGIC, version) for version in (VERSION, REPLACEMENT_VERSION)}
_FOOTER = Struct(">qqqqqQQIIiH2xI4s")
_LINEAGE = Struct(">qqqq")
_CRC = Struct(">I")
LINEAGE_BYTES = _LINEAGE.size + _CRC.size
FOOTER_BYTES = _FOOTER.size
_FOOTER_CRC_AT = FOOTER_BYTES - 8
# A hundred MiB in blocks of 256 KiB has an index of about 4 KiB: one suffix read of this size has it all.
SUFFIX_HINT_BYTES = 8 * 1024
_MIN_ENTRY_BYTES = 4


class Lineage(NamedTuple):
    """Of a segment that takes the place of others: the generation of the plan by which it was made, all the offsets
    [base_offset, end_offset) that were to be replaced at once, and where the log started then."""

    generation: int
    base_offset: int
    end_offset: int
    log_start_offset: int


class Footer(NamedTuple):
    """What a segment says of itself; `end_offset` is the one after its last."""

    base_offset: int
    end_offset: int
    record_count: int
    min_timestamp_ms: int
    max_timestamp_ms: int
    raw_bytes: int
    index_position: int
    index_bytes: int
    block_count: int
    epoch: int
    lineage: Lineage | None = None

    @property
    def index_end(self) -> int:
        return self.index_position + self.index_bytes

    @property
    def size_bytes(self) -> int:
        """What it takes at the end of the object, lineage included."""
        return FOOTER_BYTES if self.lineage is None else LINEAGE_BYTES + FOOTER_BYTES


class BlockEntry(NamedTuple):
    """One block's line in the index; `size_bytes` is what it takes in the object, header included."""

    first_offset: int
    max_timestamp_ms: int
    record_count: int
    size_bytes: int


class BlockRange(NamedTuple):
    """Blocks `first_block` to `last_block`, both included, at bytes [start, end) of the object."""

    first_block: int
    last_block: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentIndex:
    """Where each block lies; block i is at [positions[i], positions[i + 1]) of the object."""

    first_offsets: array[int]
    max_timestamps: array[int]
    record_counts: array[int]
    positions: array[int]

    @property
    def block_count(self) -> int:
        return len(self.first_offsets)

    def block_of(self, offset: int) -> int:
        """The block that holds `offset`; the first one for an offset before the segment."""
        return max(0, bisect_right(self.first_offsets, offset) - 1)

    def blocks_for(self, offset: int, max_bytes: int) -> BlockRange:
        """The blocks to read from `offset` on: as many whole ones as fit in `max_bytes`, but at least one."""
        first = self.block_of(offset)
        start = self.positions[first]
        last = max(first, bisect_right(self.positions, start + max_bytes) - 2)
        return BlockRange(first, last, start, self.positions[last + 1])

    def block_for_timestamp(self, timestamp_ms: int) -> int | None:
        """The first block with a record at or after the timestamp."""
        for block, largest in enumerate(self.max_timestamps):
            if largest >= timestamp_ms:
                return block
        return None


def encode_header(lineage: Lineage | None = None) -> bytes:
    return _HEADER.pack(MAGIC, VERSION if lineage is None else REPLACEMENT_VERSION)


def decode_header(data: Buffer) -> None:
    """Check an object's first bytes; a range reader needs only the footer."""
    if bytes(data[:HEADER_BYTES]) not in _HEADERS:
        raise CorruptData("the object does not start like a STRM segment of this version")


def encode_index(entries: Sequence[BlockEntry], base_offset: int) -> bytes:
    """Each field as the difference from the block before, so most take one or two bytes."""
    index = bytearray()
    offset, timestamp = base_offset, 0
    for entry in entries:
        append_uvarint(index, entry.first_offset - offset)
        append_varint(index, entry.max_timestamp_ms - timestamp)
        append_uvarint(index, entry.record_count)
        append_uvarint(index, entry.size_bytes)
        offset, timestamp = entry.first_offset, entry.max_timestamp_ms
    return bytes(index + _CRC.pack(crc32c(index)))


def decode_index(data: Buffer, footer: Footer) -> SegmentIndex:
    """The index from its exact bytes, [footer.index_position, footer.index_end) of the object."""
    body = bytes(data[: -_CRC.size])
    if len(data) != footer.index_bytes or _CRC.pack(crc32c(body)) != data[-_CRC.size :]:
        raise CorruptData("the segment's index does not match its CRC")
    first_offsets, max_timestamps, record_counts = array("q"), array("q"), array("q")
    positions = array("q", [HEADER_BYTES])
    offset, timestamp, at = footer.base_offset, 0, 0
    try:
        for _ in range(footer.block_count):
            step, at = read_uvarint(body, at)
            change, at = read_varint(body, at)
            count, at = read_uvarint(body, at)
            size_bytes, at = read_uvarint(body, at)
            offset += step
            timestamp += change
            first_offsets.append(offset)
            max_timestamps.append(timestamp)
            record_counts.append(count)
            positions.append(positions[-1] + size_bytes)
    except OverflowError:
        raise CorruptData("the segment's index has a number out of range") from None
    if at != len(body) or positions[-1] != footer.index_position:
        raise CorruptData("the segment's index does not describe its blocks")
    return SegmentIndex(
        first_offsets=first_offsets, max_timestamps=max_timestamps, record_counts=record_counts, positions=positions
    )


def encode_footer(footer: Footer) -> bytes:
    *fields, lineage = footer
    version = VERSION if lineage is None else REPLACEMENT_VERSION
    encoded = bytearray(_FOOTER.pack(*fields, version, 0, MAGIC))
    _CRC.pack_into(encoded, _FOOTER_CRC_AT, crc32c(memoryview(encoded)[:_FOOTER_CRC_AT]))
    return bytes(encoded) if footer.lineage is None else _encode_lineage(footer.lineage) + encoded


def _encode_lineage(lineage: Lineage) -> bytes:
    encoded = _LINEAGE.pack(*lineage)
    return encoded + _CRC.pack(crc32c(encoded))


def _decode_lineage(suffix: Buffer) -> Lineage:
    """From the last bytes of an object, in front of the footer's own."""
    encoded = memoryview(suffix)[-LINEAGE_BYTES - FOOTER_BYTES : -FOOTER_BYTES]
    if len(encoded) < LINEAGE_BYTES or _CRC.pack(crc32c(encoded[: _LINEAGE.size])) != encoded[_LINEAGE.size :]:
        raise CorruptData("the segment's lineage does not match its CRC")
    return Lineage(*_LINEAGE.unpack_from(encoded))


def decode_footer(suffix: Buffer, object_size: int) -> Footer:
    """The footer from the last bytes of an object; what it says is checked against the object's size."""
    if len(suffix) < FOOTER_BYTES:
        raise CorruptData(f"a segment of {object_size} bytes has no room for a footer")
    tail = memoryview(suffix)[-FOOTER_BYTES:]
    *fields, version, crc, magic = _FOOTER.unpack(tail)
    if magic != MAGIC:
        raise CorruptData("the object does not end like a STRM segment")
    if crc32c(tail[:_FOOTER_CRC_AT]) != crc:
        raise CorruptData("the segment's footer does not match its CRC")
    if version not in (VERSION, REPLACEMENT_VERSION):
        raise Unsupported(f"STRM version {version} is newer than this program", hint="upgrade streamhouse")
    footer = Footer(*fields)
    if version == REPLACEMENT_VERSION:
        footer = footer._replace(lineage=_decode_lineage(suffix))
    if footer.index_position < HEADER_BYTES or footer.index_end + footer.size_bytes != object_size:
        raise CorruptData(f"the segment's footer does not fit an object of {object_size} bytes")
    if not 1 <= footer.block_count <= footer.index_bytes // _MIN_ENTRY_BYTES:
        raise CorruptData(f"an index of {footer.index_bytes} bytes cannot list {footer.block_count} blocks")
    return footer


def index_in(suffix: Buffer, footer: Footer) -> memoryview | None:
    """The index's bytes, if the suffix that gave the footer has them; else they take one more range read."""
    start = len(suffix) - footer.size_bytes - footer.index_bytes
    return memoryview(suffix)[start : start + footer.index_bytes] if start >= 0 else None
