"""Rows and columns to record batches and back, for those that need more than opaque bytes."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from streamhouse.format import kernel
from streamhouse.format.batch import (
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    build,
    check_crc,
    iter_headers,
)
from streamhouse.format.columns import Columns, Section
from streamhouse.format.compression import DEFAULT_LIMIT_BYTES, Codec, compress, decompress
from streamhouse.format.rows import Record, columns_of, records_of
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import BatchTooLarge, CorruptBatch, InvalidInput

__all__ = [
    "DEFAULT_MAX_BATCH_BYTES",
    "Columns",
    "Record",
    "columns_of",
    "decode_columns",
    "decode_records",
    "encode_columns",
    "encode_records",
    "records_of",
    "section_of",
    "with_utf8_header_keys",
]

# What Kafka's brokers take unless told otherwise (max.message.bytes).
DEFAULT_MAX_BATCH_BYTES = 1024 * 1024 + 12

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_INT32_MAX = 2**31 - 1
_SEQUENCE_MODULUS = 2**31
# Bytes 0x80 to 0xBF continue a character of UTF-8 and never start one.
_CONTINUATION = range(0x80, 0xC0)


def decode_columns(
    batches: Buffer,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> Columns:
    """The records of a run of whole batches, those from `start_offset` up to `end_offset` (not included).

    CRCs are checked and control batches skipped. `limit_bytes` is for all batches together, decompressed.
    """
    start = _INT64_MIN if start_offset is None else start_offset
    end = _INT64_MAX if end_offset is None else end_offset
    view = memoryview(batches)
    sections: list[Section] = []
    room = min(limit_bytes, _INT32_MAX)
    for pos, header in iter_headers(view):
        if header.end_offset <= start or header.base_offset >= end:
            continue
        section = section_of(view[pos : pos + header.size_bytes], header, room)
        if section is not None:
            sections.append(section)
            room -= len(section.records)
    return with_utf8_header_keys(kernel.decode_sections(sections, start, end))


def section_of(batch: memoryview, header: BatchHeader, room: int) -> Section | None:
    """A batch's records without their codec, and None for a control batch, which has none of ours."""
    if header.magic != MAGIC:
        raise CorruptBatch(f"the record batch at offset {header.base_offset} has magic {header.magic}")
    check_crc(batch, header)
    if header.is_control:
        return None
    return Section(
        decompress(header.codec, batch[HEADER_BYTES:], room),
        header.base_offset,
        header.last_offset_delta,
        header.base_timestamp_ms,
        header.max_timestamp_ms if header.is_log_append_time else None,
        header.record_count,
    )


def with_utf8_header_keys(columns: Columns) -> Columns:
    """Header keys are text, but nobody checked that on the way in: what is not UTF-8 gets U+FFFD, as Java reads it."""
    data = columns.header_key_data
    if bytes(data).isascii():
        return columns
    offsets = memoryview(columns.header_key_offsets).cast("i")
    try:
        str(data, "utf-8")
        # All of it is UTF-8, and so is each key unless one was cut inside a character.
        if not any(data[start] in _CONTINUATION for start, end in pairwise(offsets) if end > start):
            return columns
    except UnicodeDecodeError:
        pass
    repaired = bytearray()
    repaired_offsets = array("i", [0])
    for start, end in pairwise(offsets):
        repaired += str(data[start:end], "utf-8", "replace").encode()
        repaired_offsets.append(len(repaired))
    return replace(columns, header_key_data=bytes(repaired), header_key_offsets=repaired_offsets.tobytes())


def encode_columns(
    columns: Columns,
    *,
    codec: Codec = Codec.NONE,
    base_offset: int | None = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES,
    rows: range | None = None,
) -> list[bytes]:
    """Batches of all rows, each of at most `max_batch_bytes` before compression unless one record is larger.

    Offsets run from `base_offset`; None keeps the columns' own, gaps included, as compaction needs. `rows`: only these.
    """
    first_row = 0
    if rows is not None:
        first_row, columns = rows.start, replace(columns, count=rows.stop)
    batches: list[bytes] = []
    own_offsets = memoryview(columns.offsets).cast("B").cast("q")
    timestamps = memoryview(columns.timestamps).cast("B").cast("q")
    row = first_row
    while row < columns.count:
        encoded = kernel.encode_rows(columns, row, max_batch_bytes - HEADER_BYTES, base_offset is not None)
        header = BatchHeader(
            base_offset=own_offsets[row] if base_offset is None else base_offset + row - first_row,
            size_bytes=0,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=codec,
            last_offset_delta=encoded.last_offset_delta,
            base_timestamp_ms=timestamps[row],
            max_timestamp_ms=encoded.max_timestamp_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=(base_sequence + row - first_row) % _SEQUENCE_MODULUS if base_sequence >= 0 else -1,
            record_count=encoded.next_row - row,
        )
        batches.append(build(header, compress(codec, encoded.records)))
        row = encoded.next_row
    return batches


def decode_records(
    batches: Buffer,
    *,
    start_offset: int | None = None,
    end_offset: int | None = None,
    limit_bytes: int = DEFAULT_LIMIT_BYTES,
) -> list[Record]:
    """The same as `decode_columns`, as rows."""
    return records_of(
        decode_columns(batches, start_offset=start_offset, end_offset=end_offset, limit_bytes=limit_bytes)
    )


def encode_records(
    records: Sequence[Record],
    *,
    codec: Codec = Codec.NONE,
    base_offset: int | None = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """One batch of all the records; offsets as in `encode_columns`."""
    batches = encode_columns(
        columns_of(records),
        codec=codec,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        max_batch_bytes=_INT32_MAX,
    )
    if not batches:
        raise InvalidInput("a record batch needs at least one record")
    if len(batches) > 1:
        raise BatchTooLarge("the records do not fit in one batch", hint="send fewer at a time")
    return batches[0]
