"""Variable-length integers as in Protocol Buffers: seven bits a byte, low ones first; zigzag for signed ones."""

from __future__ import annotations

from streamhouse.model.buffer import Buffer
from streamhouse.model.errors import CorruptData

_MAX_BITS = 70


def append_uvarint(out: bytearray, value: int) -> None:
    if value < 0:
        raise ValueError(f"{value} is negative")
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def append_varint(out: bytearray, value: int) -> None:
    append_uvarint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """The value at `at`, and where it ends."""
    value = shift = 0
    while at < len(data) and shift < _MAX_BITS:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise CorruptData("a number is cut short or too long")


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    value, at = read_uvarint(data, at)
    return value >> 1 ^ -(value & 1), at
