"""How many batches a Produce request claims to carry, counted without building anything.

A large frame made of tiny pieces would cost far more time and memory to decode than its bytes; so large frames are
counted first, and the counting stops at the limit."""

from __future__ import annotations

from struct import Struct

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka.reading import TRUNCATED, read_uvarint, skip_tagged_fields

FLEXIBLE_SINCE = 9
TOPIC_IDS_SINCE = 13
_ACKS_AND_TIMEOUT_BYTES = 6
_INDEX_BYTES = 4
_UUID_BYTES = 16
_int16 = Struct(">h").unpack_from
_int32 = Struct(">i").unpack_from


def check_batch_count(buf: memoryview, pos: int, end: int, version: int, limit: int) -> None:
    """MalformedRequest if the request body has more than `limit` topics and partitions, or cannot be walked."""
    walk = _walk_flexible if version >= FLEXIBLE_SINCE else _walk_legacy
    try:
        walk(buf[:end], pos, end, version, limit)
    except TRUNCATED as problem:
        raise MalformedRequest(f"a Produce request ends too early: {problem}") from None


def _walk_legacy(buf: memoryview, pos: int, end: int, version: int, limit: int) -> None:
    pos += 2 + max(0, _int16(buf, pos)[0]) + _ACKS_AND_TIMEOUT_BYTES
    (topics,) = _int32(buf, pos)
    pos += 4
    for _ in range(topics):
        limit = _spend(limit)
        pos += 2 + max(0, _int16(buf, pos)[0])
        (partitions,) = _int32(buf, pos)
        pos += 4
        for _ in range(partitions):
            limit = _spend(limit)
            pos += _INDEX_BYTES
            pos += 4 + max(0, _int32(buf, pos)[0])


def _walk_flexible(buf: memoryview, pos: int, end: int, version: int, limit: int) -> None:
    length, pos = read_uvarint(buf, pos)
    pos += max(0, length - 1) + _ACKS_AND_TIMEOUT_BYTES
    topics, pos = read_uvarint(buf, pos)
    for _ in range(topics - 1):
        limit = _spend(limit)
        length, pos = (_UUID_BYTES + 1, pos) if version >= TOPIC_IDS_SINCE else read_uvarint(buf, pos)
        pos += max(0, length - 1)
        partitions, pos = read_uvarint(buf, pos)
        for _ in range(partitions - 1):
            limit = _spend(limit)
            length, pos = read_uvarint(buf, pos + _INDEX_BYTES)
            pos = skip_tagged_fields(buf, pos + max(0, length - 1), end)
        pos = skip_tagged_fields(buf, pos, end)


def _spend(limit: int) -> int:
    if limit == 0:
        raise MalformedRequest("a Produce request has more topics and partitions than a broker can have")
    return limit - 1
