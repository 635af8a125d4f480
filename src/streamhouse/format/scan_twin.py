"""The compiled scans in plain Python, for machines that could not compile them; both pass one suite."""

from __future__ import annotations

from struct import Struct
from uuid import UUID

from crc32c import crc32c

from streamhouse.format.batch import CRC_START, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, read_header
from streamhouse.format.run_summary import RunSummary
from streamhouse.format.wal_layout import (
    BATCH_KIND,
    ENTRY_HEADER_BYTES,
    FILE_HEADER_BYTES,
    MARK_PAYLOAD,
    PREFIX_BYTES,
    WalBatch,
)
from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptBatch

_ENTRY_HEADER = Struct(">QII")
_PREFIX = Struct(">B16si")
# Of a batch header, what a WAL scan needs: base offset, batchLength, CRC and last offset delta.
_BATCH_EXTENT = Struct(">qi5xI2xi")
_INT64_MAX = 2**63 - 1
_CRC_COVERED_HEADER_BYTES = 12


def scan_entries(buf: Buffer, first_position: int) -> tuple[list[WalBatch], int]:
    """The batches of a WAL file, and where its valid entries stop."""
    view = memoryview(buf)
    entries: list[WalBatch] = []
    topics: dict[bytes, UUID] = {}
    at, size = FILE_HEADER_BYTES, len(view)
    while size - at >= ENTRY_HEADER_BYTES:
        position, payload_bytes, crc = _ENTRY_HEADER.unpack_from(view, at)
        start = at + ENTRY_HEADER_BYTES
        end = start + payload_bytes
        if position != first_position + at or payload_bytes < len(MARK_PAYLOAD) or end > size:
            break
        covered = start + PREFIX_BYTES + CRC_START
        header_crc = crc32c(view[at : at + _CRC_COVERED_HEADER_BYTES])
        if payload_bytes == len(MARK_PAYLOAD):
            if view[start:end] != MARK_PAYLOAD or crc32c(MARK_PAYLOAD, header_crc) != crc:
                break
        else:
            batch_at = start + PREFIX_BYTES
            if payload_bytes < PREFIX_BYTES + HEADER_BYTES or crc32c(view[start:covered], header_crc) != crc:
                break
            kind, topic, partition = _PREFIX.unpack_from(view, start)
            base_offset, length, batch_crc, last_offset_delta = _BATCH_EXTENT.unpack_from(view, batch_at)
            if kind != BATCH_KIND or length + LENGTH_OVERHEAD_BYTES != end - batch_at:
                break
            if crc32c(view[covered:end]) != batch_crc:
                break
            topic_id = topics.get(topic)
            if topic_id is None:
                topic_id = topics[topic] = UUID(bytes=topic)
            end_offset = base_offset + last_offset_delta + 1
            entries.append(WalBatch(position, topic_id, partition, batch_at, end, base_offset, end_offset))
        at = end
    return entries, at


def scan_run(buf: Buffer, start: int, max_bytes: int) -> RunSummary:
    """Whole batches from `start` on, of at most `max_bytes` but at least one batch, summed up."""
    size = len(buf)
    at = start
    base_offset = end_offset = record_count = min_timestamp = max_timestamp = plain_bytes = 0
    while at < size:
        header = read_header(buf, at)
        following = at + header.size_bytes
        if header.size_bytes < HEADER_BYTES or following > size:
            raise CorruptBatch(f"the record batch at byte {at} says {header.size_bytes} bytes of {size - at}")
        if header.last_offset_delta < 0 or header.record_count < 0 or header.end_offset > _INT64_MAX:
            raise CorruptBatch(f"the record batch at byte {at} has offsets or a count out of range")
        if at > start and following - start > max_bytes:
            break
        high = header.max_timestamp_ms
        low = high if header.is_log_append_time else min(header.base_timestamp_ms, high)
        if at == start:
            base_offset, min_timestamp, max_timestamp = header.base_offset, low, high
        elif header.base_offset < end_offset:
            raise CorruptBatch(f"offset {header.base_offset} comes again: the batch before ends at {end_offset}")
        end_offset = header.end_offset
        record_count += header.record_count
        min_timestamp = min(min_timestamp, low)
        max_timestamp = max(max_timestamp, high)
        plain_bytes += 0 if header.codec else header.size_bytes
        at = following
    return RunSummary(at, base_offset, end_offset, record_count, min_timestamp, max_timestamp, plain_bytes)
