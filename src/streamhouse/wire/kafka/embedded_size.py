"""Whether a consumer's subscription or assignment names too many things, found without building anything.

They are bytes inside of requests, which the limits on requests do not look into."""

from __future__ import annotations

from struct import Struct

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka.reading import TRUNCATED

_OWNED_SINCE = 1
_int16 = Struct(">h").unpack_from
_int32 = Struct(">i").unpack_from


def check_subscription(buf: bytes, pos: int, version: int, limit: int) -> None:
    """MalformedRequest if there are more than `limit` topics and owned partitions, or they cannot be walked."""
    try:
        limit = _spend(limit, topics := _int32(buf, pos)[0])
        pos += 4
        for _ in range(topics):
            pos = _after_string(buf, pos)
        pos += 4 + max(0, _int32(buf, pos)[0])
        if version >= _OWNED_SINCE:
            _check_partitions(buf, pos, limit)
    except TRUNCATED as problem:
        raise MalformedRequest(f"a subscription ends too early: {problem}") from None


def check_assignment(buf: bytes, pos: int, limit: int) -> None:
    """The same of an assignment's topics and partitions."""
    try:
        _check_partitions(buf, pos, limit)
    except TRUNCATED as problem:
        raise MalformedRequest(f"an assignment ends too early: {problem}") from None


def _check_partitions(buf: bytes, pos: int, limit: int) -> None:
    limit = _spend(limit, topics := _int32(buf, pos)[0])
    pos += 4
    for _ in range(topics):
        pos = _after_string(buf, pos)
        limit = _spend(limit, partitions := max(0, _int32(buf, pos)[0]))
        pos += 4 + 4 * partitions


def _after_string(buf: bytes, pos: int) -> int:
    (length,) = _int16(buf, pos)
    return pos + 2 + int(max(0, length))


def _spend(limit: int, count: int) -> int:
    if count > limit:
        raise MalformedRequest("more topics and partitions than one consumer may name")
    return limit - count
