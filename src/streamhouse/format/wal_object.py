"""WAL objects: the batches of many partitions in one object, with a directory, so that it explains itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple
from uuid import UUID

from crc32c import crc32c

from streamhouse.format.batch import iter_headers
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch, CorruptData, Unsupported
from streamhouse.model.names import TopicPartition

MAGIC = b"SHWO"
VERSION = 1

_HEADER = Struct(">4sH2x")
# Topic id, partition, epoch, base offset, end offset, position, size, CRC of the range's bytes.
_ENTRY = Struct(">16siiqqQII")
# Directory position, number of ranges, CRC of the directory, version; then the CRC of these, and the magic.
_FOOTER = Struct(">QIIH2xI4s")
_CRC = Struct(">I")
HEADER_BYTES = _HEADER.size
ENTRY_BYTES = _ENTRY.size
FOOTER_BYTES = _FOOTER.size
_FOOTER_CRC_AT = FOOTER_BYTES - 8


class BatchRun(NamedTuple):
    """Consecutive batches of one partition on their way into an object, all of one epoch, placed in their log."""

    partition: TopicPartition
    epoch: int
    base_offset: int
    end_offset: int
    batches: Sequence[Buffer]


class RangeEntry(NamedTuple):
    """One range's line in the directory: [base_offset, end_offset) of a partition's log is at [position, position +
    size_bytes) of the object; `checksum` is the CRC-32C of those bytes."""

    partition: TopicPartition
    epoch: int
    base_offset: int
    end_offset: int
    position: int
    size_bytes: int
    checksum: int

    @property
    def end(self) -> int:
        return self.position + self.size_bytes


class Footer(NamedTuple):
    """Where an object's directory is."""

    directory_position: int
    range_count: int
    directory_checksum: int

    @property
    def directory_end(self) -> int:
        return self.directory_position + self.range_count * ENTRY_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedWalObject:
    """An object ready to upload: `parts` in order are its bytes. The last part is directory and footer, which holds
    the checksum of every other byte and so tells this object from any other."""

    parts: list[Buffer]
    size_bytes: int
    entries: list[RangeEntry]

    @property
    def tail(self) -> Buffer:
        return self.parts[-1]


def encode_wal_object(runs: Sequence[BatchRun]) -> EncodedWalObject:
    """One object with a range for each run, in the order given.

    The parts refer to the batches, which must not change until the object has been uploaded."""
    assert runs, "an object has at least one range"
    parts: list[Buffer] = [_HEADER.pack(MAGIC, VERSION)]
    entries: list[RangeEntry] = []
    position = HEADER_BYTES
    for run in runs:
        assert run.batches, "a range has at least one batch"
        size_bytes = checksum = 0
        for batch in run.batches:
            checksum = crc32c(batch, checksum)
            size_bytes += len(batch)
        parts += run.batches
        entries.append(RangeEntry(*run[:4], position, size_bytes, checksum))
        position += size_bytes
    tail = _encode_tail(entries, position)
    parts.append(tail)
    return EncodedWalObject(parts=parts, size_bytes=position + len(tail), entries=entries)


def _encode_tail(entries: Sequence[RangeEntry], directory_position: int) -> bytes:
    """The directory and the footer."""
    directory = b"".join(
        _ENTRY.pack(entry.partition.topic_id.bytes, entry.partition.partition, *entry[1:]) for entry in entries
    )
    footer = bytearray(_FOOTER.pack(directory_position, len(entries), crc32c(directory), VERSION, 0, MAGIC))
    _CRC.pack_into(footer, _FOOTER_CRC_AT, crc32c(memoryview(footer)[:_FOOTER_CRC_AT]))
    return directory + footer


def decode_footer(suffix: Buffer, object_size: int) -> Footer:
    """The footer from the last bytes of an object; what it says is checked against the object's size."""
    if len(suffix) < FOOTER_BYTES:
        raise CorruptData(f"a WAL object of {object_size} bytes has no room for a footer")
    last = memoryview(suffix)[-FOOTER_BYTES:]
    directory_position, range_count, directory_checksum, version, checksum, magic = _FOOTER.unpack(last)
    if magic != MAGIC:
        raise CorruptData("the object does not end like a WAL object")
    if crc32c(last[:_FOOTER_CRC_AT]) != checksum:
        raise CorruptData("the WAL object's footer does not match its CRC")
    if version != VERSION:
        raise Unsupported(f"WAL object version {version} is newer than this program", hint="upgrade streamhouse")
    footer = Footer(directory_position, range_count, directory_checksum)
    if range_count == 0 or directory_position < HEADER_BYTES or footer.directory_end + FOOTER_BYTES != object_size:
        raise CorruptData(f"the WAL object's footer does not fit an object of {object_size} bytes")
    return footer


def decode_directory(data: Buffer, footer: Footer) -> list[RangeEntry]:
    """The ranges from the directory's exact bytes, [directory_position, directory_end) of the object."""
    if len(data) != footer.range_count * ENTRY_BYTES or crc32c(data) != footer.directory_checksum:
        raise CorruptData("the WAL object's directory does not match its CRC")
    entries = [
        RangeEntry(TopicPartition(UUID(bytes=topic_id), partition), *place)
        for topic_id, partition, *place in _ENTRY.iter_unpack(data)
    ]
    position = HEADER_BYTES
    for entry in entries:
        if entry.position != position:
            raise CorruptData("the WAL object's ranges do not follow one another")
        position = entry.end
    if position != footer.directory_position:
        raise CorruptData("the WAL object's directory does not describe its ranges")
    return entries


def decode_range(data: Buffer, *, base_offset: int, end_offset: int, checksum: int) -> list[memoryview]:
    """The batches of a range from its exact bytes: whole, contiguous, and from `base_offset` to `end_offset`."""
    view = memoryview(data)
    if crc32c(view) != checksum:
        raise CorruptData("the range does not match its CRC")
    batches: list[memoryview] = []
    offset = base_offset
    try:
        for position, header in iter_headers(view):
            if header.base_offset != offset or header.end_offset <= offset:
                raise CorruptData(f"a batch of offset {header.base_offset} is where {offset} should be")
            batches.append(view[position : position + header.size_bytes])
            offset = header.end_offset
    except CorruptBatch as problem:
        raise CorruptData(f"the range is not a run of whole batches: {problem.message}") from None
    if offset != end_offset or not batches:
        raise CorruptData(f"the range ends at offset {offset}, not {end_offset}")
    return batches


def decode_wal_object(data: Buffer) -> list[tuple[RangeEntry, list[memoryview]]]:
    """A whole object: each range with its batches, everything checked."""
    view = memoryview(data)
    if view[:HEADER_BYTES] != _HEADER.pack(MAGIC, VERSION):
        raise CorruptData("the object does not start like a WAL object of this version")
    footer = decode_footer(view, len(view))
    return [
        (
            entry,
            decode_range(
                view[entry.position : entry.end],
                base_offset=entry.base_offset,
                end_offset=entry.end_offset,
                checksum=entry.checksum,
            ),
        )
        for entry in decode_directory(view[footer.directory_position : footer.directory_end], footer)
    ]
