"""The header of a record batch (Kafka's RecordBatch v2): read it, check it, patch it, walk a run of them."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from streamhouse.format.compression import DEFAULT_LIMIT_BYTES, Codec, compress, decompress
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch, InvalidRecords, Unsupported

HEADER_BYTES = 61
MAGIC = 2

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20

# The largest attributes that a producer may send: a codec, and no other bit that we support.
_LAST_CODEC = int(Codec.ZSTD)

# batchLength counts from the byte after itself; base offset and batchLength come before.
LENGTH_OVERHEAD_BYTES = 12
# The CRC covers everything from the attributes on, so base offset and leader epoch can be patched without it.
CRC_START = 21
_MAGIC_AT = 16
_MIN_RECORD_BYTES = 7
# The most bytes that a byte of each codec's data can become: deflate's longest match takes two bits, snappy copies 64
# bytes with three, an lz4 match grows by 255 with each byte, and a zstd block of one repeated byte takes four for 2^17.
_MOST_INFLATED = (1, 1032, 22, 255, 32768)
# More would be refused by whoever reads them.
_MOST_RECORDS = DEFAULT_LIMIT_BYTES // _MIN_RECORD_BYTES
_SEQUENCE_MODULUS = 2**31

_HEADER = Struct(">qiibIhiqqqhii")
_INT16 = Struct(">h")
_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")
# Producer id, producer epoch and base sequence.
_PRODUCER = Struct(">qhi")
# Base offset, batchLength and last offset delta: what a walk over a run needs.
_EXTENT = Struct(">qi11xi")

_LENGTH_AT = 8
_LEADER_EPOCH_AT = 12
_CRC_AT = 17
_ATTRIBUTES_AT = 21
_MAX_TIMESTAMP_AT = 35
_PRODUCER_AT = 43


class BatchHeader(NamedTuple):
    """A batch's header; `size_bytes` is the whole batch, header included."""

    base_offset: int
    size_bytes: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def understates_max_timestamp(self) -> bool:
        """Whether the largest timestamp lies before the first one, as sarama wrote it (-1) before its version 1.45.1.

        Retention and lookups by time go by the header, and would take the records for older than all others."""
        return self.max_timestamp_ms < self.base_timestamp_ms

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def end_offset(self) -> int:
        """The offset after the batch's last one."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record; sequences go from 2^31 - 1 back to 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCE_MODULUS


def read_header(buf: Buffer, pos: int = 0) -> BatchHeader:
    """The header at `pos`, as it stands: nothing is checked but that there are enough bytes for it."""
    if pos < 0 or len(buf) - pos < HEADER_BYTES:
        raise CorruptBatch(f"a record batch header needs {HEADER_BYTES} bytes, {max(0, len(buf) - pos)} are there")
    offset, length, epoch, magic, crc, attributes, last, base_time, max_time, pid, pid_epoch, sequence, count = (
        _HEADER.unpack_from(buf, pos)
    )
    size = length + LENGTH_OVERHEAD_BYTES
    # Past the class's own constructor, which would cost as much as all the rest of this.
    return tuple.__new__(
        BatchHeader,
        (offset, size, epoch, magic, crc, attributes, last, base_time, max_time, pid, pid_epoch, sequence, count),
    )


def check_produced(buf: memoryview) -> BatchHeader:
    """What a broker checks of the one batch that a producer sent, which must fill `buf` exactly."""
    size = len(buf)
    if size < HEADER_BYTES:
        raise _refusal_of_short(buf)
    header = read_header(buf)
    # This runs for every batch produced: one expression for what is nearly always true, the reasons apart.
    if not (
        header[1] == size
        and header[3] == MAGIC
        and 0 <= header[5] <= _LAST_CODEC
        and header[6] == header[12] - 1 >= 0
        and header[12] * _MIN_RECORD_BYTES <= (size - HEADER_BYTES) * _MOST_INFLATED[header[5]]
        and header[12] <= _MOST_RECORDS
        and (header[9] == -1 or (header[9] >= 0 and header[10] >= 0 and header[11] >= 0))
    ):
        raise _refusal(header, buf)
    if crc32c(buf[CRC_START:]) != header[4]:
        raise _damaged()
    return header


def _refusal_of_short(buf: memoryview) -> CorruptBatch | InvalidRecords:
    if len(buf) > _MAGIC_AT and buf[_MAGIC_AT] < MAGIC:
        return _old_magic(buf[_MAGIC_AT])
    return CorruptBatch(f"a record batch of {len(buf)} bytes is smaller than its header")


def _old_magic(magic: int) -> InvalidRecords:
    return InvalidRecords(
        f"message format v{magic} is not supported", hint="use a client that writes record batches (v2)"
    )


def _damaged() -> CorruptBatch:
    return CorruptBatch("the record batch does not match its CRC")


def _refusal(header: BatchHeader, buf: memoryview) -> CorruptBatch | InvalidRecords | Unsupported:
    """Why a batch whose fields do not agree is refused, the first reason of several: as corrupt, which clients try
    again, only what may have become so on its way."""
    attributes, count, size = header.attributes, header.record_count, len(buf)
    if header.magic != MAGIC:
        return _old_magic(header.magic) if header.magic in (0, 1) else CorruptBatch(f"magic {header.magic} is unknown")
    if _is_followed(header.size_bytes, buf):
        return InvalidRecords("more than one record batch was sent to a partition", hint="send one in each request")
    if header.size_bytes != size:
        return CorruptBatch(f"a record batch says it has {header.size_bytes} bytes, {size} were sent")
    if crc32c(buf[CRC_START:]) != header.crc:
        return _damaged()
    if attributes & CONTROL_BIT:
        return InvalidRecords("a producer may not write control batches")
    if attributes & TRANSACTIONAL_BIT:
        return Unsupported("transactions are not supported", hint="produce without transactional.id")
    if not 0 <= attributes <= _LAST_CODEC:
        return InvalidRecords(f"record batch attributes {attributes & 0xFFFF:#06x} are not a producer's to set")
    if header.last_offset_delta != count - 1 or count < 1:
        return InvalidRecords(f"a record batch of {count} records has last offset delta {header.last_offset_delta}")
    most_bytes = min((size - HEADER_BYTES) * _MOST_INFLATED[attributes], DEFAULT_LIMIT_BYTES)
    if count * _MIN_RECORD_BYTES > most_bytes:
        return InvalidRecords(f"{count} records do not fit in a record batch of {size} bytes")
    producer = f"producer id {header.producer_id}, epoch {header.producer_epoch}, sequence {header.base_sequence}"
    return InvalidRecords(f"{producer} do not go together")


def _is_followed(size_bytes: int, buf: memoryview) -> bool:
    """Whether another whole batch comes behind the first, which has so many bytes."""
    rest_bytes = len(buf) - size_bytes
    if size_bytes < HEADER_BYTES or rest_bytes < HEADER_BYTES:
        return False
    following = read_header(buf, size_bytes)
    return following.magic == MAGIC and HEADER_BYTES <= following.size_bytes <= rest_bytes


def check_crc(batch: Buffer, header: BatchHeader) -> None:
    """That one whole stored batch is what its CRC says; base offset and leader epoch are outside of it."""
    if crc32c(memoryview(batch)[CRC_START:]) != header.crc:
        raise CorruptBatch(f"the record batch at offset {header.base_offset} does not match its CRC")


def place(buf: bytearray | memoryview, pos: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch at `pos` its place in the log, in the two fields that its CRC does not cover."""
    _INT64.pack_into(buf, pos, base_offset)
    _INT32.pack_into(buf, pos + _LEADER_EPOCH_AT, leader_epoch)


def stamp_append_time(batch: Buffer, timestamp_ms: int) -> bytes:
    """The batch under LogAppendTime: one timestamp for all of its records, which readers take from the header."""
    stamped = bytearray(batch)
    header = read_header(stamped)
    _INT16.pack_into(stamped, _ATTRIBUTES_AT, header.attributes | LOG_APPEND_TIME_BIT)
    _INT64.pack_into(stamped, _MAX_TIMESTAMP_AT, timestamp_ms)
    return _seal(stamped)


def stamp_max_timestamp(batch: Buffer, timestamp_ms: int) -> bytes:
    """The batch with another largest timestamp in its header; its records stay byte for byte what they were."""
    stamped = bytearray(batch)
    _INT64.pack_into(stamped, _MAX_TIMESTAMP_AT, timestamp_ms)
    return _seal(stamped)


def stamp_producer(batch: Buffer, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
    """The batch as this idempotent producer's; that it matches its CRC must have been checked, for it gets another."""
    stamped = bytearray(batch)
    _PRODUCER.pack_into(stamped, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    return _seal(stamped)


def recompress(batch: Buffer, codec: Codec, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """The same records under another codec; they are not parsed, so they stay byte for byte what they were."""
    header = read_header(batch)
    if header.codec == codec:
        return bytes(batch)
    records = decompress(header.codec, memoryview(batch)[HEADER_BYTES:], limit_bytes)
    again = bytearray(memoryview(batch)[:HEADER_BYTES])
    again += compress(codec, records)
    _INT16.pack_into(again, _ATTRIBUTES_AT, (header.attributes & ~CODEC_MASK) | codec)
    return _seal(again)


def build(header: BatchHeader, records: Buffer) -> bytes:
    """A batch from its header's fields and its (already compressed) records; size and CRC are worked out here."""
    batch = bytearray(HEADER_BYTES)
    _HEADER.pack_into(batch, 0, header.base_offset, 0, *header[2:])
    batch += records
    return _seal(batch)


def _seal(batch: bytearray) -> bytes:
    """Write the length and then the CRC of a batch whose other fields are final."""
    _INT32.pack_into(batch, _LENGTH_AT, len(batch) - LENGTH_OVERHEAD_BYTES)
    _UINT32.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[CRC_START:]))
    return bytes(batch)


def iter_headers(buf: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Position and header of each batch in a run of whole batches."""
    pos, size = 0, len(buf)
    while pos < size:
        header = read_header(buf, pos)
        if header.size_bytes < HEADER_BYTES or header.size_bytes > size - pos:
            raise CorruptBatch(f"the record batch at byte {pos} says {header.size_bytes} bytes of {size - pos}")
        yield pos, header
        pos += header.size_bytes


def first_batch_at(buf: Buffer, offset: int) -> int:
    """Where the first batch starts that holds `offset` or lies after it; the end if there is none."""
    pos, size = 0, len(buf)
    while pos < size:
        base_offset, batch_bytes, last_offset_delta = _extent(buf, pos, size)
        if base_offset + last_offset_delta >= offset:
            return pos
        pos += batch_bytes
    return size


def whole_batches(buf: Buffer, start: int, max_bytes: int) -> int:
    """Where to stop so that [start, stop) is whole batches of at most `max_bytes`, but at least the first batch."""
    pos, size = start, len(buf)
    while pos < size:
        following = pos + _extent(buf, pos, size)[1]
        if following - start > max_bytes and pos > start:
            break
        pos = following
        if pos - start >= max_bytes:
            break
    return pos


def _extent(buf: Buffer, pos: int, size: int) -> tuple[int, int, int]:
    """Base offset, size and last offset delta of the batch at `pos`, which must lie inside the run."""
    if size - pos < HEADER_BYTES:
        raise CorruptBatch(f"a run of record batches ends {size - pos} bytes into a header")
    base_offset, length, last_offset_delta = _EXTENT.unpack_from(buf, pos)
    batch_bytes = length + LENGTH_OVERHEAD_BYTES
    if batch_bytes < HEADER_BYTES or batch_bytes > size - pos:
        raise CorruptBatch(f"the record batch at byte {pos} says {batch_bytes} bytes of {size - pos}")
    return base_offset, batch_bytes, last_offset_delta
