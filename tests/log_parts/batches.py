"""Batches as producers send them and as a log holds them."""

from __future__ import annotations

from format_samples.batches import batch
from streamhouse.format.batch import BatchHeader, check_produced, place
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records

NOBODY = (-1, -1, -1)
EPOCH = 3


def sent(
    size_bytes: int = 100,
    *,
    count: int = 1,
    producer: tuple[int, int, int] = NOBODY,
    timestamp_ms: int = 1_000,
    fill: bytes = b"x",
) -> memoryview:
    """A produced batch of exactly this size, whose records nobody will decode."""
    records = (fill * size_bytes)[: size_bytes - 61]
    return memoryview(bytearray(batch(count=count, records=records, producer=producer, timestamp_ms=timestamp_ms)))


def header_of(produced: memoryview) -> BatchHeader:
    return check_produced(produced)


def real(
    *values: bytes,
    timestamps: tuple[int, ...] = (),
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = NOBODY,
) -> memoryview:
    """A batch of records that can be read back."""
    records = [
        Record(index, timestamps[index] if timestamps else 1_000 + index, None, value)
        for index, value in enumerate(values)
    ]
    encoded = encode_records(
        records,
        codec=codec,
        base_offset=base_offset,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )
    return memoryview(bytearray(encoded))


def placed(base_offset: int, size_bytes: int = 100, *, count: int = 1, fill: bytes = b"x") -> memoryview:
    """A batch as a log holds it, with its offset and its leader's epoch."""
    produced = sent(size_bytes, count=count, fill=fill)
    place(produced, 0, base_offset, EPOCH)
    return produced
