"""Kafka's primitive types written: what the generated encoders are made of."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack
from typing import Final

from streamhouse.model.buffer import Buffer
from streamhouse.wire.kafka.primitives import Records

_SHORT: Final = 0x7F
"""Below it, a length plus one is a varint of one byte."""

_pack_int16 = Struct(">h").pack
_pack_int32 = Struct(">i").pack


# ─── numbers ───


def write_uvarint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


# ─── strings and bytes ───


def write_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    out += _pack_int16(len(raw))
    out += raw


def write_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out += b"\xff\xff"
    else:
        write_string(out, value)


def write_compact_string(out: bytearray, value: str) -> None:
    raw = value.encode()
    if len(raw) < _SHORT:
        out.append(len(raw) + 1)
    else:
        write_uvarint(out, len(raw) + 1)
    out += raw


def write_compact_nullable_string(out: bytearray, value: str | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_string(out, value)


def write_bytes(out: bytearray, value: Buffer) -> None:
    out += _pack_int32(len(value))
    out += value


def write_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out += b"\xff\xff\xff\xff"
    else:
        write_bytes(out, value)


def write_compact_bytes(out: bytearray, value: Buffer) -> None:
    write_uvarint(out, len(value) + 1)
    out += value


def write_compact_nullable_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(0)
    else:
        write_compact_bytes(out, value)


# ─── records: passed through, never copied ───


def _pass_through(chunks: list[Buffer], value: Records) -> bytearray:
    chunks += value if isinstance(value, list) else [value]
    out = bytearray()
    chunks.append(out)
    return out


def _records_size(value: Records) -> int:
    return sum(map(len, value)) if isinstance(value, list) else len(value)


def write_nullable_records(out: bytearray, chunks: list[Buffer], value: Records | None) -> bytearray:
    """Put `value` itself into `chunks`; returns the buffer, now the last of `chunks`, in which the message goes on."""
    if value is None:
        out += b"\xff\xff\xff\xff"
        return out
    size = _records_size(value)
    out += _pack_int32(size)
    return _pass_through(chunks, value) if size else out


def write_compact_nullable_records(out: bytearray, chunks: list[Buffer], value: Records | None) -> bytearray:
    """As `write_nullable_records`, with a varint for the size."""
    if value is None:
        out.append(0)
        return out
    size = _records_size(value)
    write_uvarint(out, size + 1)
    return _pass_through(chunks, value) if size else out


# ─── arrays ───


def write_count(out: bytearray, values: Sequence[object]) -> None:
    out += _pack_int32(len(values))


def write_nullable_count(out: bytearray, values: Sequence[object] | None) -> None:
    out += _pack_int32(-1 if values is None else len(values))


def write_compact_count(out: bytearray, values: Sequence[object]) -> None:
    if len(values) < _SHORT:
        out.append(len(values) + 1)
    else:
        write_uvarint(out, len(values) + 1)


def write_compact_nullable_count(out: bytearray, values: Sequence[object] | None) -> None:
    if values is None:
        out.append(0)
    else:
        write_compact_count(out, values)


def write_strings(out: bytearray, values: Sequence[str]) -> None:
    for value in values:
        write_string(out, value)


def write_compact_strings(out: bytearray, values: Sequence[str]) -> None:
    for value in values:
        write_compact_string(out, value)


def write_int8s(out: bytearray, values: Sequence[int]) -> None:
    out += pack(f">{len(values)}b", *values)


def write_int32s(out: bytearray, values: Sequence[int]) -> None:
    if len(values) == 1:  # the replicas of a partition
        out += _pack_int32(values[0])
    elif values:
        out += pack(f">{len(values)}i", *values)


def write_int64s(out: bytearray, values: Sequence[int]) -> None:
    out += pack(f">{len(values)}q", *values)


# ─── tagged fields (KIP-482) ───


def write_tagged_fields(out: bytearray, fields: Sequence[tuple[int, bytearray]]) -> None:
    write_uvarint(out, len(fields))
    for tag, raw in fields:
        write_uvarint(out, tag)
        write_uvarint(out, len(raw))
        out += raw


# ─── refusals ───


def null_not_encodable(field: str, version: int) -> ValueError:
    return ValueError(f"{field} may not be None in version {version}")
