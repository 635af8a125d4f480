"""The primitive types: their limits, and what is refused before anything is allocated."""

from __future__ import annotations

import pytest

from streamhouse.model.errors import MalformedRequest
from streamhouse.wire.kafka import reading, writing
from streamhouse.wire.kafka.primitives import Buffer, Records


@pytest.mark.parametrize(
    ("value", "raw"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (300, b"\xac\x02"),
        (2**31 - 1, b"\xff\xff\xff\xff\x07"),
        (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_a_varint_has_seven_bits_a_byte_lowest_first(value: int, raw: bytes) -> None:
    out = bytearray()
    writing.write_uvarint(out, value)

    assert out == raw
    assert reading.read_uvarint(memoryview(raw + b"rest"), 0) == (value, len(raw))


@pytest.mark.parametrize("raw", [b"\xff\xff\xff\xff\x10", b"\xff\xff\xff\xff\xff\x01", b"\x80\x80\x80\x80\x80\x00"])
def test_a_varint_of_more_than_32_bits_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedRequest, match="varint"):
        reading.read_uvarint(memoryview(raw), 0)


@pytest.mark.parametrize(
    ("reader", "raw"),
    [
        (reading.read_string, b"\xff\xff"),
        (reading.read_string, b"\x80\x00"),
        (reading.read_nullable_string, b"\xff\xfe"),
        (reading.read_compact_string, b"\x00"),
        (reading.read_bytes, b"\xff\xff\xff\xff"),
        (reading.read_nullable_bytes, b"\xff\xff\xff\xfe"),
        (reading.read_compact_bytes, b"\x00"),
    ],
)
def test_a_negative_length_is_refused_where_it_does_not_mean_null(reader: object, raw: bytes) -> None:
    assert callable(reader)
    with pytest.raises(MalformedRequest):
        reader(memoryview(raw), 0, len(raw))


@pytest.mark.parametrize(
    ("reader", "raw"),
    [
        (reading.read_nullable_string, b"\xff\xff"),
        (reading.read_compact_nullable_string, b"\x00"),
        (reading.read_nullable_bytes, b"\xff\xff\xff\xff"),
        (reading.read_compact_nullable_bytes, b"\x00"),
    ],
)
def test_null_is_read_where_it_is_allowed(reader: object, raw: bytes) -> None:
    assert callable(reader)
    assert reader(memoryview(raw), 0, len(raw)) == (None, len(raw))


@pytest.mark.parametrize(
    ("reader", "raw"),
    [
        (reading.read_string, b"\x00\x05abcd"),
        (reading.read_compact_string, b"\x06abcd"),
        (reading.read_bytes, b"\x00\x00\x00\x05abcd"),
        (reading.read_compact_bytes, b"\x06abcd"),
    ],
)
def test_a_length_beyond_the_end_is_refused_instead_of_shortened(reader: object, raw: bytes) -> None:
    assert callable(reader)
    with pytest.raises(MalformedRequest, match="5 bytes are announced, but 4 remain"):
        reader(memoryview(raw), 0, len(raw))


def test_bytes_are_a_view_of_the_buffer_and_not_a_copy() -> None:
    buffer = bytearray(b"\x00\x00\x00\x03abc")

    value, _ = reading.read_bytes(memoryview(buffer), 0, len(buffer))
    buffer[4:] = b"xyz"

    assert value == b"xyz"


@pytest.mark.parametrize(
    ("reader", "four"),
    [
        (reading.read_count, b"\x00\x00\x00\x04"),
        (reading.read_nullable_count, b"\x00\x00\x00\x04"),
        (reading.read_compact_count, b"\x05"),
        (reading.read_compact_nullable_count, b"\x05"),
    ],
)
def test_a_count_is_held_against_the_bytes_that_remain(reader: object, four: bytes) -> None:
    assert callable(reader)
    enough = memoryview(four + bytes(12))
    assert reader(enough, 0, len(enough), 3) == (4, len(four))

    with pytest.raises(MalformedRequest, match="an array of 4 elements of at least 3 bytes, but 11 bytes remain"):
        reader(enough, 0, len(enough) - 1, 3)


@pytest.mark.parametrize(
    ("reader", "raw"),
    [
        (reading.read_count, b"\xff\xff\xff\xff"),
        (reading.read_count, b"\x7f\xff\xff\xff"),
        (reading.read_nullable_count, b"\xff\xff\xff\xfe"),
        (reading.read_nullable_count, b"\x7f\xff\xff\xff"),
        (reading.read_compact_count, b"\x00"),
        (reading.read_compact_count, b"\xff\xff\xff\xff\x0f"),
        (reading.read_compact_nullable_count, b"\xff\xff\xff\xff\x0f"),
    ],
)
def test_an_absurd_count_is_refused(reader: object, raw: bytes) -> None:
    assert callable(reader)
    with pytest.raises(MalformedRequest):
        reader(memoryview(raw), 0, len(raw), 1)


def test_unknown_tagged_fields_are_skipped_within_their_bounds() -> None:
    raw = b"\x02" + b"\x05\x03abc" + b"\x90\x4e\x00" + b"next"

    assert reading.skip_tagged_fields(memoryview(raw), 0, len(raw)) == raw.index(b"next")


def test_a_tagged_field_that_passes_the_end_is_refused() -> None:
    raw = b"\x01\x05\x04abc"

    with pytest.raises(MalformedRequest, match="tagged field 5 has 4 bytes, but 3 remain"):
        reading.skip_tagged_fields(memoryview(raw), 0, len(raw))


def test_records_are_passed_through_and_the_message_goes_on_behind_them() -> None:
    first, second = bytes(100), memoryview(bytes(50))
    out = bytearray(b"head")
    chunks: list[Buffer] = [out]

    out = writing.write_nullable_records(out, chunks, [first, second])
    out += b"tail"

    assert chunks[0] == b"head\x00\x00\x00\x96"
    assert chunks[1] is first
    assert chunks[2] is second
    assert chunks[3:] == [b"tail"]


@pytest.mark.parametrize("records", [None, b"", []])
def test_no_records_make_no_buffer_of_their_own(records: Records | None) -> None:
    out = bytearray()
    chunks: list[Buffer] = [out]

    assert writing.write_compact_nullable_records(out, chunks, records) is out
    assert chunks == [b"\x00" if records is None else b"\x01"]
