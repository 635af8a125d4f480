"""A record as every client can give it and take it, and the samples that the round trips use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

Header = tuple[str, bytes | None]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`timestamp_ms` is None where the client cannot choose it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()
    timestamp_ms: int | None = None


def sample_records() -> list[Record]:
    """Every shape of key, value, header and timestamp, and one record that compresses well."""
    start = 1_700_000_000_000
    odd_headers = (("trace", b"abc"), ("empty", b""), ("none", None), ("bytes", b"\xff\x80"), ("trace", b"again"))
    return [
        Record(key=b"customer-1", value=b"order created", timestamp_ms=start),
        Record(key=None, value=b"no key", timestamp_ms=start + 1),
        Record(key=b"customer-2", value=None, timestamp_ms=start + 2),
        Record(key=b"customer-3", value=b"with headers", headers=odd_headers, timestamp_ms=start + 3),
        Record(key=b"customer-4", value=b"an earlier event", timestamp_ms=start - 86_400_000),
        Record(key="ключ-😀".encode(), value="значение 😀".encode(), timestamp_ms=start + 5),
        Record(key=b"\xff\xfe\x80", value=bytes(range(1, 256)), timestamp_ms=start + 6),
        Record(key=b"customer-7", value=b"the same again and again " * 400, timestamp_ms=start + 7),
    ]


def empty_records() -> list[Record]:
    """Empty is not null: only clients that can tell them apart take these."""
    return [
        Record(key=b"", value=b"", timestamp_ms=1_700_000_000_100),
        Record(key=b"", value=None, timestamp_ms=1_700_000_000_101),
        Record(key=None, value=b"", timestamp_ms=1_700_000_000_102),
        Record(key=b"\x00", value=b"\x00nul\x00", headers=(("", b"\x00"),), timestamp_ms=1),
    ]


def random_records(total_bytes: int, seed: int) -> list[Record]:
    """Records whose values add up to `total_bytes`, from one byte to most of a megabyte, in no order."""
    source = random.Random(seed)
    records: list[Record] = []
    left = total_bytes
    while left:
        size = min(left, int(2 ** source.uniform(0, 19.8)))
        left -= size
        key = f"{seed}-{len(records)}".encode()
        records.append(Record(key=key, value=source.randbytes(size), timestamp_ms=1_700_000_000_000 + len(records)))
    return records


def without_timestamps(records: Sequence[Record]) -> list[Record]:
    return [replace(record, timestamp_ms=None) for record in records]


def without_null_headers(records: Sequence[Record]) -> list[Record]:
    return [
        replace(record, headers=tuple((name, value) for name, value in record.headers if value is not None))
        for record in records
    ]
