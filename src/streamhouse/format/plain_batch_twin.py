"""Plain batches in Python, for machines that could not compile `_plain_batch`; both pass one suite."""

from __future__ import annotations

from struct import Struct

from crc32c import crc32c

from streamhouse.format.batch import HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, BatchHeader
from streamhouse.format.varint import append_varint

_before_crc = Struct(">qiibI").pack
_after_crc = Struct(">hiqqqhii").pack
_NO_EPOCH = -1


def encode_plain_batch(rows: list[tuple[bytes | None, bytes]], timestamp_ms: int) -> tuple[bytes, BatchHeader]:
    """The batch of (key, value) rows, and its header."""
    records = b"".join([_record(delta, key, value) for delta, (key, value) in enumerate(rows)])
    count = len(rows)
    size_bytes = HEADER_BYTES + len(records)
    rest = _after_crc(0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count)
    crc = crc32c(records, crc32c(rest))
    head = _before_crc(0, size_bytes - LENGTH_OVERHEAD_BYTES, _NO_EPOCH, MAGIC, crc)
    header = BatchHeader(
        0, size_bytes, _NO_EPOCH, MAGIC, crc, 0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count
    )
    return head + rest + records, header


def _record(offset_delta: int, key: bytes | None, value: bytes) -> bytes:
    """Attributes, timestamp delta and number of headers are 0, which takes a byte of each."""
    body = bytearray(2)
    append_varint(body, offset_delta)
    append_varint(body, -1 if key is None else len(key))
    body += key or b""
    append_varint(body, len(value))
    body += value
    body.append(0)
    record = bytearray()
    append_varint(record, len(body))
    return bytes(record + body)
