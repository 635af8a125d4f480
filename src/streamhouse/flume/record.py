"""A record in the bytes of Flume's document: a header of 16 bytes, and the payload.

    [Offset:8][Size:4][CRC32:4][Payload]

Nodes store records as Kafka's batches, which have keys, headers, times and CRC-32C; this is what Flume shows of one, in
a form that a program written from the document can read and check."""

from __future__ import annotations

from binascii import crc32
from dataclasses import dataclass, field
from struct import Struct
from typing import BinaryIO

from streamhouse.model.errors import CorruptData

RECORD_HEADER_BYTES = 16
MAX_PAYLOAD_BYTES = 2**31 - 1
_HEADER = Struct(">qiI")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`crc32` is what the bytes said, or what is right where there were none."""

    offset: int
    payload: bytes
    crc32: int = field(default=-1)

    def __post_init__(self) -> None:
        if self.crc32 < 0:
            object.__setattr__(self, "crc32", crc32(self.payload))

    @property
    def total_size(self) -> int:
        """Bytes of header and payload."""
        return RECORD_HEADER_BYTES + len(self.payload)

    def validate_crc(self) -> bool:
        return self.crc32 == crc32(self.payload)

    def encode(self) -> bytes:
        return _HEADER.pack(self.offset, len(self.payload), self.crc32) + self.payload


def new_record(payload: bytes) -> Record:
    """At offset 0, until it is somewhere."""
    return Record(offset=0, payload=payload)


def decode_record(data: bytes) -> Record:
    """The record at the start of the bytes. Whether its payload is what it was, `validate_crc` says."""
    if len(data) < RECORD_HEADER_BYTES:
        raise CorruptData(f"{len(data)} bytes are too few for a record's header of {RECORD_HEADER_BYTES}")
    offset, size, crc = _HEADER.unpack_from(data)
    if not 0 <= size <= len(data) - RECORD_HEADER_BYTES:
        raise CorruptData(f"a payload of {size} bytes does not fit into {len(data) - RECORD_HEADER_BYTES}")
    return Record(offset=offset, payload=data[RECORD_HEADER_BYTES : RECORD_HEADER_BYTES + size], crc32=crc)


def read_record(reader: BinaryIO, max_payload_bytes: int = MAX_PAYLOAD_BYTES) -> Record:
    """The next record of a stream; EOFError at its end."""
    header = reader.read(RECORD_HEADER_BYTES)
    if not header:
        raise EOFError("no record is left")
    if len(header) < RECORD_HEADER_BYTES:
        raise CorruptData(f"the stream ends within a record's header, after {len(header)} bytes")
    _, size, _ = _HEADER.unpack(header)
    if not 0 <= size <= max_payload_bytes:
        raise CorruptData(f"a payload of {size} bytes is not between 0 and {max_payload_bytes}")
    payload = reader.read(size)
    if len(payload) < size:
        raise CorruptData(f"the stream ends within a payload, after {len(payload)} of {size} bytes")
    return decode_record(header + payload)
