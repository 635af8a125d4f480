"""Records in the bytes of Flume's document."""

from __future__ import annotations

from io import BytesIO

import pytest

from streamhouse.flume import RECORD_HEADER_BYTES, Record, decode_record, new_record, read_record
from streamhouse.model.errors import CorruptData


def test_the_documents_example() -> None:
    record = new_record(b"message")
    data = record.encode()
    decoded = decode_record(data)
    assert decoded == record
    assert read_record(BytesIO(data)) == record
    assert decoded.validate_crc()
    assert decoded.total_size == len(data) == RECORD_HEADER_BYTES + 7


def test_the_bytes_are_offset_size_and_ieee_crc32_big_endian() -> None:
    assert Record(offset=258, payload=b"123456789").encode() == (b"\0\0\0\0\0\0\1\2\0\0\0\x09\xcb\xf4\x39\x26123456789")


def test_a_flipped_bit_is_found() -> None:
    data = bytearray(new_record(b"message").encode())
    data[-1] ^= 1
    assert not decode_record(bytes(data)).validate_crc()


def test_a_stream_is_read_to_its_end() -> None:
    records = [Record(offset=number, payload=b"x" * number) for number in range(4)]
    stream = BytesIO(b"".join(record.encode() for record in records))
    assert [read_record(stream) for _ in records] == records
    with pytest.raises(EOFError):
        read_record(stream)


@pytest.mark.parametrize("cut", [1, RECORD_HEADER_BYTES - 1, RECORD_HEADER_BYTES, RECORD_HEADER_BYTES + 6])
def test_what_ends_within_a_record_is_damage(cut: int) -> None:
    data = new_record(b"message").encode()[:cut]
    with pytest.raises(CorruptData):
        decode_record(data)
    with pytest.raises(CorruptData):
        read_record(BytesIO(data))


def test_a_size_that_nobody_has_is_refused_before_anything_is_read() -> None:
    data = bytearray(new_record(b"message").encode())
    data[8:12] = b"\x7f\xff\xff\xff"
    with pytest.raises(CorruptData, match="between 0 and 1024"):
        read_record(BytesIO(bytes(data)), 1024)
    data[8:12] = b"\xff\xff\xff\xff"
    with pytest.raises(CorruptData, match="-1"):
        read_record(BytesIO(bytes(data)))
