"""What `_produce_rows.pyx` must do, in plain Python: the records of a produce request, as columns.

Reads the wire format itself, field by field: two bytes there say "another record", and as a message object they take a
hundred, so a request full of them has to be refused before anything is made of it."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import count

from streamhouse.format.column_builder import ColumnBuilder
from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.grpc.produce_message import NOT_GIVEN, ProduceRows, too_many_parts

_VARINT = 0
_BYTES = 2
_FIXED_SIZES = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_UINT64 = 2**64 - 1
_UINT32 = 2**32 - 1
_Field = tuple[int, int | bytes]
"""A field's number, and what it holds: a number, or bytes."""


def read_rows(message: bytes, now_ms: int, max_parts: int) -> ProduceRows:
    """`now_ms` is the time of records without one. MalformedRequest if it is no produce request, BatchTooLarge if it
    has more than `max_parts` records and headers."""
    topic = b""
    builder = ColumnBuilder()
    partitions = array("i")
    parts = count(1)
    for field in _fields(message):
        match field:
            case (1, bytes(name)):
                topic = name
            case (2, bytes(record)):
                _check(next(parts), max_parts)
                partitions.append(_add_record(builder, record, now_ms, parts, max_parts))
    return ProduceRows(topic, builder.finish(), partitions.tobytes())


def _add_record(builder: ColumnBuilder, record: bytes, now_ms: int, parts: Iterator[int], max_parts: int) -> int:
    key: bytes | None = None
    value: bytes | None = None
    headers: list[tuple[bytes, bytes | None]] = []
    partition = NOT_GIVEN
    timestamp_ms = now_ms
    for field in _fields(record):
        match field:
            case (1, bytes(data)):
                key = data
            case (2, bytes(data)):
                value = data
            case (3, bytes(data)):
                headers.append(_header(data))
                _check(next(parts), max_parts)
            case (4, int(number)):
                partition = _signed(number & _UINT32, 32)
            case (5, int(number)):
                timestamp_ms = _signed(number, 64)
    builder.append(0, timestamp_ms, key, value, headers)
    return partition


def _header(header: bytes) -> tuple[bytes, bytes | None]:
    key = b""
    value: bytes | None = None
    for field in _fields(header):
        match field:
            case (1, bytes(data)):
                key = data
            case (2, bytes(data)):
                value = data
    return key, value


def _check(parts: int, max_parts: int) -> None:
    if parts > max_parts:
        raise too_many_parts(max_parts)


def _fields(message: bytes) -> Iterator[_Field]:
    """Those that hold numbers or bytes; no field of a produce request holds anything else."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if not 8 <= tag <= _UINT32:
            raise _malformed()
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in _FIXED_SIZES:
            size = _FIXED_SIZES[kind]
        else:
            raise _malformed()
        if size > len(message) - at:
            raise _malformed()
        if kind == _BYTES:
            yield number, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index, byte in enumerate(message[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value & _UINT64, at + index + 1
    raise _malformed()


def _signed(number: int, bits: int) -> int:
    return number - (1 << bits) if number >> (bits - 1) else number


def _malformed() -> MalformedRequest:
    return MalformedRequest("bytes that are not a produce request")
