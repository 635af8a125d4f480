"""Whether the bytes of a segment or of a WAL range are those that were registered (the deep half of invariant I7)."""

from __future__ import annotations

from crc32c import crc32c

from streamhouse.format.segment import decode_segment
from streamhouse.format.wal_object import decode_range
from streamhouse.metadata.store import SegmentRow
from streamhouse.metadata.wal_objects import WalRange
from streamhouse.model.errors import CorruptData, StreamHouseError


def segment_problem(row: SegmentRow, data: bytes) -> str | None:
    """None for a sound one: its checksum, every block, and what its footer says of offsets and records."""
    if crc32c(data) != row.checksum:
        return "does not match its checksum"
    try:
        footer, _ = decode_segment(data)
    except StreamHouseError as problem:
        return f"is damaged: {problem.message}"
    # Compaction may have taken records from either end.
    if not row.base_offset <= footer.base_offset < footer.end_offset <= row.end_offset:
        return f"holds offsets {footer.base_offset} to {footer.end_offset - 1}"
    if footer.record_count != row.record_count:
        return f"holds {footer.record_count} records instead of {row.record_count}"
    if footer.epoch != row.epoch:
        return f"was written in epoch {footer.epoch} instead of {row.epoch}"
    return None


def range_problem(wal_range: WalRange, data: bytes) -> str | None:
    """None for one that is sound in the object's bytes: its checksum, its batches and their offsets."""
    end = wal_range.position + wal_range.size_bytes
    if end > len(data):
        return f"should end at byte {end}, but the object has {len(data)}"
    try:
        decode_range(
            memoryview(data)[wal_range.position : end],
            base_offset=wal_range.base_offset,
            end_offset=wal_range.end_offset,
            checksum=wal_range.checksum,
        )
    except CorruptData as problem:
        return f"is damaged: {problem.message}"
    return None
