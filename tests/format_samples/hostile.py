"""Batches with a right CRC that cost more to read than they seem to, or that say what is not so."""

from __future__ import annotations

from format_samples.batches import batch
from streamhouse.format.compression import Codec, compress
from streamhouse.format.records import Record, encode_records

RAW_BYTES = 16 * 1024 * 1024
PARTS = 200_000


def many_headers(count: int = 1_000_000) -> bytes:
    """One record; some hundred bytes."""
    return encode_records([Record(0, 1_000, b"key", b"value", (("", b""),) * count)], codec=Codec.ZSTD)


def inflating(size_bytes: int = RAW_BYTES + 1) -> bytes:
    """One record whose value is zeros."""
    return encode_records([Record(0, 1_000, b"key", bytes(size_bytes))], codec=Codec.ZSTD)


def lying(claimed: int = 1_000, *, codec: Codec = Codec.ZSTD) -> bytes:
    """It has one record and says that it has many more."""
    honest = encode_records([Record(0, 1_000, b"key", b"value")])[61:]
    return batch(count=claimed, records=compress(codec, honest), attributes=codec)
