"""Records to batches and back: exactness, ranges, and hostile bytes; the compiled kernel and its twin alike."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from format_samples.batches import batch
from format_samples.kernels import Kernel, both_kernels, using
from streamhouse.format.batch import iter_headers, stamp_append_time
from streamhouse.format.compression import Codec, compress
from streamhouse.format.records import (
    Record,
    columns_of,
    decode_columns,
    decode_records,
    encode_columns,
    encode_records,
    records_of,
)
from streamhouse.model.errors import BatchTooLarge, CorruptBatch, InvalidInput

RECORDS = [
    Record(10, 1_000, b"key", b"value", (("a", b"1"), ("b", None), ("a", b""))),
    Record(11, 999, None, None),
    Record(12, -1, b"", b"", (("", b"x"),)),
    Record(13, 2**45, b"\xff" * 200, b"\0" * 70_000, (("clé ✓", b"\xfe"),)),
]


def varint(value: int) -> bytes:
    raw = value << 1 ^ value >> 63
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    return bytes(out) + bytes([raw])


def record(body: bytes, *, size: int | None = None) -> bytes:
    return varint(len(body) if size is None else size) + body


@both_kernels
@pytest.mark.parametrize("codec", list(Codec))
def test_records_come_out_exactly_as_they_went_in(chosen: Kernel, codec: Codec) -> None:
    with using(chosen):
        assert decode_records(encode_records(RECORDS, codec=codec, base_offset=10)) == RECORDS


@both_kernels
def test_a_range_of_offsets_is_cut_out_of_the_batches(chosen: Kernel) -> None:
    run = b"".join(
        encode_records([Record(0, 5, b"k", b"v", (("h", b"x"),))] * 10, base_offset=10 * n) for n in range(3)
    )
    with using(chosen):
        cut = decode_records(run, start_offset=7, end_offset=22)
        assert [record.offset for record in cut] == list(range(7, 22))
        assert all(record.headers == (("h", b"x"),) for record in cut)
        assert decode_records(run, start_offset=30) == []
        assert decode_records(run, end_offset=0) == []
        assert len(decode_records(run, start_offset=29)) == 1


@both_kernels
def test_batches_outside_the_range_are_not_even_checked(chosen: Kernel) -> None:
    good, bad = encode_records(RECORDS[:1]), bytearray(encode_records(RECORDS[:1], base_offset=1))
    bad[-1] ^= 1
    with using(chosen):
        assert len(decode_records(good + bad, end_offset=1)) == 1
        with pytest.raises(CorruptBatch, match="CRC"):
            decode_records(good + bad)


@both_kernels
def test_control_batches_have_no_records_of_ours(chosen: Kernel) -> None:
    control = batch(5, attributes=0x20, records=b"anything")
    with using(chosen):
        kept = decode_records(control + encode_records(RECORDS[:1], base_offset=6))
    assert [record.offset for record in kept] == [6]


@both_kernels
def test_an_append_time_batch_gives_every_record_its_time(chosen: Kernel) -> None:
    with using(chosen):
        stamped = stamp_append_time(encode_records(RECORDS), 4_242)
        assert {record.timestamp_ms for record in decode_records(stamped)} == {4_242}


@both_kernels
def test_columns_are_in_arrows_layout(chosen: Kernel) -> None:
    with using(chosen):
        columns = decode_columns(encode_records(RECORDS[:3], base_offset=10))
    assert columns.count == 3
    assert list(memoryview(columns.offsets).cast("q")) == [10, 11, 12]
    assert list(memoryview(columns.timestamps).cast("q")) == [1_000, 999, -1]
    assert list(memoryview(columns.key_offsets).cast("i")) == [0, 3, 3, 3]
    assert (columns.key_data, columns.key_validity) == (b"key", b"\x05")
    assert list(memoryview(columns.header_list_offsets).cast("i")) == [0, 3, 3, 4]
    assert list(memoryview(columns.header_key_offsets).cast("i")) == [0, 1, 2, 3, 3]
    assert (columns.header_key_data, columns.header_value_data) == (b"aba", b"1x")
    assert columns.header_value_validity == b"\x0d"


@both_kernels
def test_a_column_without_nulls_has_no_bitmap(chosen: Kernel) -> None:
    with using(chosen):
        columns = decode_columns(encode_records([Record(0, 0, b"k", b"v", (("h", b""),))]))
    assert (columns.key_validity, columns.value_validity, columns.header_value_validity) == (None, None, None)


@both_kernels
def test_nothing_decodes_to_empty_columns(chosen: Kernel) -> None:
    with using(chosen):
        columns = decode_columns(b"")
    assert (columns.count, columns.header_count, records_of(columns)) == (0, 0, [])


@both_kernels
def test_columns_are_split_into_batches_by_size(chosen: Kernel) -> None:
    records = [Record(index, index, b"key", bytes(100)) for index in range(100)]
    with using(chosen):
        batches = encode_columns(
            columns_of(records), max_batch_bytes=1_000, producer_id=4, producer_epoch=2, base_sequence=2**31 - 50
        )
        assert len(batches) > 10
        assert all(len(one) <= 1_000 for one in batches)
        assert decode_records(b"".join(batches)) == records
    headers = [header for _, header in iter_headers(b"".join(batches))]
    for before, after in pairwise(headers):
        assert after.base_offset == before.end_offset
        assert after.base_sequence == (before.last_sequence + 1) % 2**31


@both_kernels
def test_a_record_larger_than_the_limit_is_a_batch_of_its_own(chosen: Kernel) -> None:
    records = [Record(0, 0, None, b"a"), Record(1, 0, None, bytes(5_000)), Record(2, 0, None, b"b")]
    with using(chosen):
        batches = encode_columns(columns_of(records), max_batch_bytes=200)
    assert [header.record_count for _, header in iter_headers(b"".join(batches))] == [1, 1, 1]


@both_kernels
def test_compaction_keeps_offsets_with_their_gaps(chosen: Kernel) -> None:
    records = [Record(offset, 7, b"k", b"v") for offset in (5, 6, 90, 2**31 + 100, 2**31 + 102)]
    with using(chosen):
        batches = encode_columns(columns_of(records), base_offset=None)
        assert decode_records(b"".join(batches)) == records
    # A delta is an int32, so the far offsets start another batch.
    assert [header.record_count for _, header in iter_headers(b"".join(batches))] == [3, 2]


@both_kernels
def test_timestamps_too_far_apart_for_one_batch_start_another(chosen: Kernel) -> None:
    records = [Record(0, -(2**62), None, b"a"), Record(1, 2**62, None, b"b"), Record(2, 2**63 - 1, None, b"c")]
    with using(chosen):
        batches = encode_columns(columns_of(records))
        assert decode_records(b"".join(batches)) == records
        assert len(batches) == 2
        with pytest.raises(BatchTooLarge):
            encode_records(records)


@both_kernels
def test_offsets_that_do_not_rise_cannot_be_kept(chosen: Kernel) -> None:
    for offsets in ((5, 5), (5, 4), (-(2**63), 2**63 - 1)):
        columns = columns_of([Record(offset, 0, None, b"v") for offset in offsets])
        with using(chosen), pytest.raises(InvalidInput, match="row 1"):
            encode_columns(columns, base_offset=None)


def test_an_empty_batch_cannot_be_encoded() -> None:
    with pytest.raises(InvalidInput):
        encode_records([])


@pytest.mark.parametrize(
    "wrong", [Record(0, 2**63, None, None), Record(2**63, 0, None, None), Record(0, 0, None, None, (("\ud800", b""),))]
)
def test_rows_that_no_batch_can_hold_are_refused(wrong: Record) -> None:
    with pytest.raises(InvalidInput):
        encode_records([wrong])


GOOD_BODY = b"\0" + varint(0) + varint(0) + varint(1) + b"k" + varint(1) + b"v" + varint(0)

HOSTILE = {
    "nothing at all": b"",
    "a length cut short": b"\xff",
    "a length of six bytes": b"\x80\x80\x80\x80\x80\x01" + GOOD_BODY,
    "a length over 32 bits": b"\xff\xff\xff\xff\x7f" + GOOD_BODY,
    "a negative length": record(GOOD_BODY, size=-1),
    "a zero length": record(b"", size=0),
    "a length past the end": record(GOOD_BODY, size=len(GOOD_BODY) + 1),
    "a huge length": record(GOOD_BODY, size=2**31 - 1),
    "a length one short": record(GOOD_BODY, size=len(GOOD_BODY) - 1),
    "a byte after the last record": record(GOOD_BODY) + b"\0",
    "a second record that was not counted": record(GOOD_BODY) * 2,
    "only attributes": record(b"\0"),
    "a timestamp of eleven bytes": record(b"\0" + b"\x80" * 10 + b"\x01" + GOOD_BODY[2:]),
    "a timestamp over 64 bits": record(b"\0" + b"\xff" * 9 + b"\x02" + GOOD_BODY[2:]),
    "a timestamp that overflows": record(b"\0" + varint(2**63 - 1) + GOOD_BODY[2:]),
    "an offset past the batch's last": record(b"\0\0" + varint(1) + GOOD_BODY[3:]),
    "a negative offset": record(b"\0\0" + varint(-1) + GOOD_BODY[3:]),
    "a huge key": record(b"\0\0\0" + varint(2**31 - 1) + b"k"),
    "a key of -2": record(b"\0\0\0" + varint(-2) + varint(0) + varint(0)),
    "a value past the record's end": record(b"\0\0\0" + varint(-1) + varint(9) + b"v"),
    "a value of the least int32": record(b"\0\0\0" + varint(-1) + varint(-(2**31)) + varint(0)),
    "no header count": record(b"\0\0\0" + varint(-1) + varint(-1)),
    "a negative header count": record(b"\0\0\0" + varint(-1) + varint(-1) + varint(-1)),
    "two billion headers": record(b"\0\0\0" + varint(-1) + varint(-1) + varint(2**31 - 1)),
    "a header with a null key": record(b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(-1) + varint(-1)),
    "a header without a value": record(b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(0)),
    "a header value past the end": record(b"\0\0\0" + varint(-1) + varint(-1) + varint(1) + varint(0) + varint(5)),
    "a byte after the headers": record(GOOD_BODY + b"\0"),
}


@both_kernels
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("section", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_records_are_corrupt(chosen: Kernel, codec: Codec, section: bytes) -> None:
    stored = batch(0, count=1, records=compress(codec, section), attributes=codec)
    with using(chosen), pytest.raises(CorruptBatch):
        decode_columns(stored)


@both_kernels
@pytest.mark.parametrize("count", [0, 2, 2**31 - 1, -1])
def test_a_record_count_that_is_not_the_number_of_records_is_corrupt(chosen: Kernel, count: int) -> None:
    stored = batch(0, count=count, last_offset_delta=2**31 - 1, records=record(GOOD_BODY))
    with using(chosen), pytest.raises(CorruptBatch):
        decode_columns(stored)


@both_kernels
def test_offsets_that_repeat_within_a_batch_are_corrupt(chosen: Kernel) -> None:
    with using(chosen), pytest.raises(CorruptBatch):
        decode_columns(batch(0, count=2, records=record(GOOD_BODY) * 2))


@both_kernels
def test_an_offset_past_the_largest_is_corrupt(chosen: Kernel) -> None:
    second = record(b"\0\0" + varint(2) + GOOD_BODY[3:])
    with using(chosen), pytest.raises(CorruptBatch):
        decode_columns(batch(2**63 - 2, count=2, last_offset_delta=2, records=record(GOOD_BODY) + second))


@both_kernels
def test_the_good_record_of_these_tests_is_good(chosen: Kernel) -> None:
    with using(chosen):
        assert decode_records(batch(3, count=1, records=record(GOOD_BODY))) == [Record(3, 1_000, b"k", b"v")]


@both_kernels
@pytest.mark.parametrize("magic", [0, 1, 3])
def test_another_magic_is_corrupt(chosen: Kernel, magic: int) -> None:
    with using(chosen), pytest.raises(CorruptBatch, match="magic"):
        decode_columns(batch(magic=magic))


def test_the_limit_is_for_all_batches_together() -> None:
    one = encode_records([Record(0, 0, None, bytes(1_000))], codec=Codec.ZSTD)
    assert decode_columns(one, limit_bytes=1_100).count == 1
    with pytest.raises(CorruptBatch, match="more than"):
        decode_columns(one + one, limit_bytes=1_100)


@both_kernels
def test_header_keys_that_are_not_text_are_read_as_java_reads_them(chosen: Kernel) -> None:
    def with_keys(*keys: bytes) -> bytes:
        body = b"\0\0\0" + varint(-1) + varint(-1) + varint(len(keys))
        for key in keys:
            body += varint(len(key)) + key + varint(-1)
        return batch(0, count=1, records=record(body))

    with using(chosen):
        (bad,) = decode_records(with_keys(b"\xff", b"ok"))
        (cut,) = decode_records(with_keys(b"\xc3", b"\xa9", b""))
        (good,) = decode_records(with_keys("é".encode(), b"", "✓".encode()))
    assert [key for key, _ in bad.headers] == ["\ufffd", "ok"]
    assert [key for key, _ in cut.headers] == ["\ufffd", "\ufffd", ""]
    assert [key for key, _ in good.headers] == ["é", "", "✓"]


@both_kernels
@pytest.mark.parametrize(
    "changes",
    [
        {"count": 3},
        {"count": -1},
        {"offsets": b""},
        {"timestamps": bytes(15)},
        {"key_offsets": bytes(8)},
        {"key_offsets": b"\0\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f"},
        {"key_offsets": b"\xff\xff\xff\xff\0\0\0\0\0\0\0\0"},
        {"key_offsets": b"\1\0\0\0\0\0\0\0\0\0\0\0"},
        {"key_validity": b""},
        {"key_data": b""},
        {"value_data": b"x"},
        {"header_list_offsets": b"\0\0\0\0\5\0\0\0\5\0\0\0"},
        {"header_list_offsets": b"\2\0\0\0\1\0\0\0\2\0\0\0"},
        {"header_key_data": b""},
        {"header_key_offsets": b""},
        {"header_value_offsets": bytes(4)},
        {"header_value_validity": b""},
    ],
    ids=str,
)
def test_columns_that_point_outside_their_data_are_refused(chosen: Kernel, changes: dict[str, object]) -> None:
    columns = columns_of(
        [Record(0, 0, b"key", b"value", (("h", b"x"),)), Record(1, 0, b"key", b"value", (("i", b"y"),))]
    )
    with using(chosen), pytest.raises(InvalidInput):
        chosen.encode_rows(replace(columns, **changes), 0, 10**6, True)


@both_kernels
@pytest.mark.parametrize("row", [-1, 2, 2**40])
def test_a_row_that_is_not_there_is_refused(chosen: Kernel, row: int) -> None:
    columns = columns_of([Record(0, 0, None, None), Record(1, 0, None, None)])
    with pytest.raises(InvalidInput):
        chosen.encode_rows(columns, row, 100, True)
