"""Batches made to measure: any header, any bytes as records."""

from __future__ import annotations

from streamhouse.format.batch import BatchHeader, build


def batch(
    base_offset: int = 0,
    *,
    count: int = 1,
    records: bytes = b"\x0c" + bytes(6),
    attributes: int = 0,
    last_offset_delta: int | None = None,
    timestamp_ms: int = 1_000,
    max_timestamp_ms: int | None = None,
    magic: int = 2,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch with a right size and a right CRC, whatever else is wrong with it."""
    return build(
        BatchHeader(
            base_offset=base_offset,
            size_bytes=0,
            leader_epoch=0,
            magic=magic,
            crc=0,
            attributes=attributes,
            last_offset_delta=count - 1 if last_offset_delta is None else last_offset_delta,
            base_timestamp_ms=timestamp_ms,
            max_timestamp_ms=timestamp_ms if max_timestamp_ms is None else max_timestamp_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            record_count=count,
        ),
        records,
    )
