"""Record batches and Produce v7 requests, built before a measurement so that building costs it nothing."""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Sequence

from crc32c import crc32c

PRODUCE_KEY, PRODUCE_VERSION = 0, 7


def _varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _record(offset_delta: int, value: bytes) -> bytes:
    body = b"\x00" + _varint(0) + _varint(offset_delta) + _varint(-1) + _varint(len(value)) + value + _varint(0)
    return _varint(len(body)) + body


def record_batch(values: Sequence[bytes]) -> bytes:
    """An uncompressed RecordBatch v2 without keys, as a producer that is not idempotent sends it."""
    last = len(values) - 1
    now_ms = int(time.time() * 1000)  # not a fixed time: retention would delete records that are too old
    checked = struct.pack(">hiqqqhii", 0, last, now_ms, now_ms, -1, -1, -1, len(values))
    checked += b"".join(_record(delta, value) for delta, value in enumerate(values))
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    """One request with its length prefix; the client that sends it patches the correlation id."""
    client, name = b"bench", topic.encode()
    request = struct.pack(f">hhih{len(client)}s", PRODUCE_KEY, PRODUCE_VERSION, 0, len(client), client)
    request += struct.pack(">hhi", -1, -1, 30_000)  # no transaction, acks=all, time-out
    request += struct.pack(f">ih{len(name)}sii", 1, len(name), name, 1, partition)
    request += struct.pack(">i", len(batch)) + batch
    return struct.pack(">i", len(request)) + request


def order_values(size_bytes: int, count: int, seed: int = 1) -> list[bytes]:
    """Values that look like order events: text that a codec can shrink, but no two alike."""
    source = random.Random(seed)
    return [_order(source, size_bytes) for _ in range(count)]


def _order(source: random.Random, size_bytes: int) -> bytes:
    text = f'{{"order": {source.randrange(10**9)}, "customer": {source.randrange(10**6)}, "items": ['
    while len(text) < size_bytes:
        sku, cents = source.getrandbits(48), source.randrange(10**5)
        text += f'{{"sku": "{sku:012x}", "n": {source.randrange(9)}, "cents": {cents}}}, '
    return text[:size_bytes].encode()
