"""Stored batches become rows as far as one answer may cost, and what cannot become rows says so."""

from __future__ import annotations

import pytest

from format_samples.hostile import PARTS, RAW_BYTES, inflating, lying, many_headers
from format_samples.kernels import Kernel, both_kernels, using
from streamhouse.format.batch import place
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records
from streamhouse.format.row_reading import CLIENT_LIMITS, DOOR_LIMITS, read_rows
from streamhouse.model.errors import UnreadableRecords


def log(*batches: bytes) -> bytes:
    """One behind the other, each at the offset that follows."""
    placed = bytearray()
    offset = 0
    for each in batches:
        start = len(placed)
        placed += each
        place(placed, start, offset, 0)
        offset += int.from_bytes(each[23:27], "big") + 1
    return bytes(placed)


def values(count: int, size: int = 1, codec: Codec = Codec.NONE) -> bytes:
    return encode_records([Record(index, 1_000, None, b"v" * size) for index in range(count)], codec=codec)


def offsets(rows: list[Record]) -> list[int]:
    return [record.offset for record in rows]


@both_kernels
def test_rows_are_read_up_to_a_number_and_from_there_on(chosen: Kernel) -> None:
    batches = log(values(3), values(3, codec=Codec.LZ4), values(1))
    with using(chosen):
        for start in range(7):
            for most in range(1, 9):
                rows = read_rows(batches, start, max_records=most)
                assert offsets(rows.records) == list(range(7))[start : start + most]
                assert rows.next_offset == min(start + most, 7)


@pytest.mark.parametrize(
    ("bad", "why", "next_offset"),
    [
        (many_headers(), "more headers than the 200000", 3),
        (inflating(), "16777216 bytes when it is decompressed", 3),
        (lying(), "are not valid", 1_002),
    ],
    ids=["headers", "inflating", "lying"],
)
def test_what_cannot_be_rows_is_told_after_what_is_before_it(bad: bytes, why: str, next_offset: int) -> None:
    batches = log(values(2), bad, values(2))

    before = read_rows(batches, 0)
    assert (offsets(before.records), before.next_offset) == ([0, 1], 2)
    with pytest.raises(UnreadableRecords, match=why) as refusal:
        read_rows(batches, before.next_offset)
    assert refusal.value.next_offset == next_offset
    assert str(next_offset) in str(refusal.value)
    after = read_rows(batches, next_offset)
    assert offsets(after.records) == [next_offset, next_offset + 1]


def test_of_a_batch_only_the_record_that_is_too_much_is_passed_over() -> None:
    records = [Record(offset, 1_000, None, b"v", (("", b""),) * count) for offset, count in enumerate([1, PARTS, 1])]
    batches = encode_records(records, codec=Codec.ZSTD)

    assert offsets(read_rows(batches, 0).records) == [0]
    with pytest.raises(UnreadableRecords, match="the record at offset 1 ") as refusal:
        read_rows(batches, 1)
    assert refusal.value.next_offset == 2
    assert offsets(read_rows(batches, 2).records) == [2]


def test_one_answer_has_so_many_headers_and_bytes_in_all() -> None:
    headers = log(*[many_headers(PARTS // 2) for _ in range(5)])
    bytes_ = log(*[inflating(RAW_BYTES // 3) for _ in range(5)])
    for batches in (headers, bytes_):
        first = read_rows(batches, 0)
        assert 1 <= len(first.records) < 5
        assert first.next_offset == len(first.records)
        assert offsets(read_rows(batches, first.next_offset).records)[0] == first.next_offset


def test_what_is_stored_without_a_codec_may_be_as_large_as_it_is() -> None:
    batches = log(values(1, RAW_BYTES + 1), values(1))
    assert len(read_rows(batches, 0).records[0].value or b"") == RAW_BYTES + 1


def test_limits_are_the_readers_own() -> None:
    assert len(read_rows(many_headers(300_000), 0, limits=CLIENT_LIMITS).records[0].headers) == 300_000
    assert DOOR_LIMITS == (RAW_BYTES, PARTS)
