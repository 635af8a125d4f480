"""Kafka's primitive types read: what the generated decoders are made of.

Readers take `(buf, pos, end)` and return `(value, next position)`. `buf` must end at `end`: then a fixed-size read past
it raises `struct.error` and an indexed one `IndexError`, which every decoder's entry point turns into
`MalformedRequest`. Only slices would be shortened silently, so only those are checked here. Every count is held against
the bytes that remain before anything is allocated for it.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, unpack_from
from struct import error as StructError
from typing import Final
from uuid import UUID

from streamhouse.model.errors import MalformedRequest

TRUNCATED: Final = (StructError, IndexError, UnicodeDecodeError)
"""What reading damaged bytes can raise besides `MalformedRequest`."""

_MAX_UVARINT_BYTES: Final = 5
_UINT32_MAX: Final = 0xFFFF_FFFF

_unpack_int8 = Struct(">b").unpack_from
_unpack_int16 = Struct(">h").unpack_from
_unpack_int32 = Struct(">i").unpack_from


# ─── numbers ───


def read_uvarint(buf: memoryview, pos: int) -> tuple[int, int]:
    value: int = buf[pos]
    if value < 0x80:
        return value, pos + 1
    second: int = buf[pos + 1]
    if second < 0x80:
        return value & 0x7F | second << 7, pos + 2
    return _read_long_uvarint(buf, pos)


def _read_long_uvarint(buf: memoryview, pos: int) -> tuple[int, int]:
    value = 0
    for index in range(_MAX_UVARINT_BYTES):
        byte: int = buf[pos + index]
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if value > _UINT32_MAX:
                raise MalformedRequest("a varint does not fit in 32 bits")
            return value, pos + index + 1
    raise MalformedRequest(f"a varint is longer than {_MAX_UVARINT_BYTES} bytes")


@lru_cache(maxsize=4096)
def uuid_from_bytes(raw: bytes) -> UUID:
    """Building a UUID costs more than the rest of a small struct, and the same topic ids come back all the time."""
    return UUID(bytes=raw)


def read_presence(buf: memoryview, pos: int) -> tuple[bool, int]:
    """The marker before a nullable struct: negative for null."""
    (marker,) = _unpack_int8(buf, pos)
    return marker >= 0, pos + 1


# ─── strings and bytes ───


def _cut_short(stop: int, pos: int, end: int) -> MalformedRequest:
    return MalformedRequest(f"{stop - pos} bytes are announced, but {end - pos} remain")


def read_string(buf: memoryview, pos: int, end: int) -> tuple[str, int]:
    (length,) = _unpack_int16(buf, pos)
    pos += 2
    if length < 0:
        raise MalformedRequest(f"the length of a string is {length}")
    stop = pos + length
    if stop > end:
        raise _cut_short(stop, pos, end)
    return str(buf[pos:stop], "utf-8"), stop


def read_nullable_string(buf: memoryview, pos: int, end: int) -> tuple[str | None, int]:
    (length,) = _unpack_int16(buf, pos)
    pos += 2
    if length == -1:
        return None, pos
    if length < 0:
        raise MalformedRequest(f"the length of a string is {length}")
    stop = pos + length
    if stop > end:
        raise _cut_short(stop, pos, end)
    return str(buf[pos:stop], "utf-8"), stop


def read_compact_string(buf: memoryview, pos: int, end: int) -> tuple[str, int]:
    length, pos = read_uvarint(buf, pos)
    if length == 0:
        raise MalformedRequest("a string that may not be null is null")
    stop = pos + length - 1
    if stop > end:
        raise _cut_short(stop, pos, end)
    return str(buf[pos:stop], "utf-8"), stop


def read_compact_nullable_string(buf: memoryview, pos: int, end: int) -> tuple[str | None, int]:
    length, pos = read_uvarint(buf, pos)
    if length == 0:
        return None, pos
    stop = pos + length - 1
    if stop > end:
        raise _cut_short(stop, pos, end)
    return str(buf[pos:stop], "utf-8"), stop


def read_bytes(buf: memoryview, pos: int, end: int) -> tuple[memoryview, int]:
    (length,) = _unpack_int32(buf, pos)
    pos += 4
    if length < 0:
        raise MalformedRequest(f"the length of a byte string is {length}")
    stop = pos + length
    if stop > end:
        raise _cut_short(stop, pos, end)
    return buf[pos:stop], stop


def read_nullable_bytes(buf: memoryview, pos: int, end: int) -> tuple[memoryview | None, int]:
    (length,) = _unpack_int32(buf, pos)
    pos += 4
    if length == -1:
        return None, pos
    if length < 0:
        raise MalformedRequest(f"the length of a byte string is {length}")
    stop = pos + length
    if stop > end:
        raise _cut_short(stop, pos, end)
    return buf[pos:stop], stop


def read_compact_bytes(buf: memoryview, pos: int, end: int) -> tuple[memoryview, int]:
    length, pos = read_uvarint(buf, pos)
    if length == 0:
        raise MalformedRequest("bytes that may not be null are null")
    stop = pos + length - 1
    if stop > end:
        raise _cut_short(stop, pos, end)
    return buf[pos:stop], stop


def read_compact_nullable_bytes(buf: memoryview, pos: int, end: int) -> tuple[memoryview | None, int]:
    length, pos = read_uvarint(buf, pos)
    if length == 0:
        return None, pos
    stop = pos + length - 1
    if stop > end:
        raise _cut_short(stop, pos, end)
    return buf[pos:stop], stop


# ─── arrays ───


def _bounded(count: int, pos: int, end: int, element_size: int) -> int:
    if count * element_size > end - pos:
        raise MalformedRequest(
            f"an array of {count} elements of at least {element_size} bytes, but {end - pos} bytes remain"
        )
    return count


def read_count(buf: memoryview, pos: int, end: int, element_size: int) -> tuple[int, int]:
    """An array's count, given the smallest size that one of its elements can have."""
    (count,) = _unpack_int32(buf, pos)
    if count < 0:
        raise MalformedRequest(f"an array's count is {count}")
    pos += 4
    return _bounded(count, pos, end, element_size), pos


def read_nullable_count(buf: memoryview, pos: int, end: int, element_size: int) -> tuple[int, int]:
    """As `read_count`; -1 stands for null."""
    (count,) = _unpack_int32(buf, pos)
    if count < -1:
        raise MalformedRequest(f"an array's count is {count}")
    pos += 4
    return _bounded(count, pos, end, element_size), pos


def read_compact_count(buf: memoryview, pos: int, end: int, element_size: int) -> tuple[int, int]:
    count, pos = read_uvarint(buf, pos)
    if count == 0:
        raise MalformedRequest("an array that may not be null is null")
    return _bounded(count - 1, pos, end, element_size), pos


def read_compact_nullable_count(buf: memoryview, pos: int, end: int, element_size: int) -> tuple[int, int]:
    """As `read_compact_count`; -1 stands for null."""
    count, pos = read_uvarint(buf, pos)
    return _bounded(count - 1, pos, end, element_size), pos


def read_strings(buf: memoryview, pos: int, end: int, count: int) -> tuple[list[str], int]:
    values = []
    for _ in range(count):
        value, pos = read_string(buf, pos, end)
        values.append(value)
    return values, pos


def read_compact_strings(buf: memoryview, pos: int, end: int, count: int) -> tuple[list[str], int]:
    values = []
    for _ in range(count):
        value, pos = read_compact_string(buf, pos, end)
        values.append(value)
    return values, pos


def read_int8s(buf: memoryview, pos: int, count: int) -> tuple[list[int], int]:
    return list(unpack_from(f">{count}b", buf, pos)), pos + count


def read_int32s(buf: memoryview, pos: int, count: int) -> tuple[list[int], int]:
    if count == 1:  # the replicas of a partition
        return list(_unpack_int32(buf, pos)), pos + 4
    return list(unpack_from(f">{count}i", buf, pos)), pos + 4 * count


def read_int64s(buf: memoryview, pos: int, count: int) -> tuple[list[int], int]:
    return list(unpack_from(f">{count}q", buf, pos)), pos + 8 * count


# ─── tagged fields (KIP-482) ───


def read_tag(buf: memoryview, pos: int, end: int) -> tuple[int, int, int]:
    """The tag, where its field begins and where it stops."""
    tag, pos = read_uvarint(buf, pos)
    size, pos = read_uvarint(buf, pos)
    stop = pos + size
    if stop > end:
        raise MalformedRequest(f"tagged field {tag} has {size} bytes, but {end - pos} remain")
    return tag, pos, stop


def skip_tagged_fields(buf: memoryview, pos: int, end: int) -> int:
    count, pos = read_uvarint(buf, pos)
    # Each field takes at least two bytes, so a count that promises more ends in IndexError, not in a long loop.
    for _ in range(count):
        _, _, pos = read_tag(buf, pos, end)
    return pos


# ─── refusals ───


def null_refused(field: str, version: int) -> MalformedRequest:
    return MalformedRequest(f"{field} may not be null in version {version}")


def tag_size_refused(struct: str, tag: int) -> MalformedRequest:
    return MalformedRequest(f"tagged field {tag} of {struct} is not as long as it says")
