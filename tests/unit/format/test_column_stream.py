"""Long logs as a few sets of columns: none too large, none lost, and never two kinds of timestamps in one."""

from __future__ import annotations

import pytest

from format_samples.kernels import Kernel, both_kernels, using
from streamhouse.format.batch import HEADER_BYTES, build, iter_headers, stamp_append_time
from streamhouse.format.column_stream import ColumnsPart, iter_columns
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, decode_records, encode_records, records_of
from streamhouse.model.errors import CorruptBatch

EVERYTHING = 2**60


def batch(base_offset: int, count: int = 10, *, codec: Codec = Codec.NONE, size: int = 10) -> bytes:
    records = [
        Record(offset=base_offset + number, timestamp_ms=1_000 + number, key=b"k", value=b"v" * size)
        for number in range(count)
    ]
    return encode_records(records, base_offset=base_offset, codec=codec)


def parts(
    *runs: bytes, start: int = 0, end: int = EVERYTHING, rows: int = EVERYTHING, size: int = EVERYTHING
) -> list[ColumnsPart]:
    return list(iter_columns(runs, start_offset=start, end_offset=end, target_rows=rows, target_bytes=size))


def offsets(found: list[ColumnsPart]) -> list[list[int]]:
    return [[record.offset for record in records_of(part.columns)] for part in found]


@both_kernels
def test_runs_are_put_together_until_there_are_enough_rows(chosen: Kernel) -> None:
    with using(chosen):
        found = parts(batch(0) + batch(10), batch(20), batch(30) + batch(40), rows=20)
    assert offsets(found) == [list(range(20)), list(range(20, 40)), list(range(40, 50))]


@both_kernels
def test_a_batch_that_cannot_be_read_is_left_out_if_that_is_wanted(chosen: Kernel) -> None:
    """Nothing of it stays: it has good records before the bad one, and nulls follow where it had values."""
    nulls = encode_records([Record(offset, 1_000, None, None) for offset in range(20, 30)], base_offset=20)
    ((_, header),) = iter_headers(bad := batch(10))
    bad = build(header._replace(record_count=11, last_offset_delta=10), bad[HEADER_BYTES:])
    passed_over: list[int] = []
    with using(chosen):
        with pytest.raises(CorruptBatch):
            parts(batch(0), bad, nulls)
        found = list(
            iter_columns(
                [batch(0), bad, nulls],
                start_offset=0,
                end_offset=EVERYTHING,
                target_rows=EVERYTHING,
                target_bytes=EVERYTHING,
                pass_over=lambda header, _: passed_over.append(header.base_offset),
            )
        )
    assert passed_over == [10]
    assert [record for part in found for record in records_of(part.columns)] == decode_records(batch(0) + nulls)


def test_what_is_compressed_counts_with_what_it_becomes() -> None:
    runs = [batch(10 * number, codec=Codec.ZSTD, size=10_000) for number in range(4)]
    assert len(runs[0]) < 1_000
    assert list(map(len, offsets(parts(*runs, size=150_000)))) == [20, 20]


def test_only_the_wanted_offsets_come() -> None:
    found = parts(batch(0), batch(10), batch(20), start=15, end=21)
    assert offsets(found) == [[15, 16, 17, 18, 19, 20]]
    assert parts(batch(0), start=10) == []
    assert parts() == []


def test_timestamps_of_the_broker_and_of_producers_are_told_apart() -> None:
    stamped = [stamp_append_time(batch(base), 77_000) for base in (10, 20)]
    found = parts(batch(0) + stamped[0], stamped[1] + batch(30))
    assert [(part.is_log_append_time, part.columns.count) for part in found] == [(False, 10), (True, 20), (False, 10)]
    assert {record.timestamp_ms for record in records_of(found[1].columns)} == {77_000}


def test_a_batch_that_does_not_match_its_crc_is_noticed() -> None:
    damaged = bytearray(batch(0))
    damaged[-1] ^= 1
    with pytest.raises(CorruptBatch, match="CRC"):
        parts(bytes(damaged))


def mixed(base_offset: int, count: int) -> bytes:
    """Some have no key, some no value, some headers, and no two are of one size."""
    records = [
        Record(
            offset=base_offset + number,
            timestamp_ms=number,
            key=None if number % 7 == 3 else b"k" * (number % 5),
            value=None if number % 11 == 5 else b"v" * number,
            headers=(("trace", None), ("h", b"x" * (number % 3)))[: number % 3],
        )
        for number in range(count)
    ]
    return encode_records(records, base_offset=base_offset)


@both_kernels
def test_columns_that_grow_batch_by_batch_are_those_of_all_batches_at_once(chosen: Kernel) -> None:
    runs = [mixed(1_000 * number, 1 + 40 * number) for number in range(12)]
    with using(chosen):
        found = parts(*runs, rows=200)
    assert len(found) > 2
    assert [record for part in found for record in records_of(part.columns)] == [
        record for run in runs for record in decode_records(run)
    ]


@both_kernels
def test_of_values_only_whether_they_are_null_is_kept_where_keys_are_wanted(chosen: Kernel) -> None:
    run = mixed(0, 60)
    with using(chosen):
        (found,) = iter_columns(
            [run], start_offset=0, end_offset=EVERYTHING, target_rows=99, target_bytes=EVERYTHING, keys_only=True
        )
    whole = decode_records(run)
    assert [(each.key, each.value, each.headers) for each in records_of(found.columns)] == [
        (each.key, None if each.value is None else b"", ()) for each in whole
    ]


@both_kernels
def test_damage_is_noticed_in_values_that_nobody_wants(chosen: Kernel) -> None:
    good = encode_records([Record(offset=0, timestamp_ms=0, key=b"k", value=b"value")], base_offset=0)
    # The value says that it is longer than its record, under a CRC that matches.
    at = good.index(b"value") - 1
    (header,) = (header for _, header in iter_headers(good))
    broken = build(header, good[HEADER_BYTES:at] + bytes([good[at] + 2]) + good[at + 1 :])
    with using(chosen), pytest.raises(CorruptBatch, match="not valid"):
        list(iter_columns([broken], start_offset=0, end_offset=9, target_rows=9, target_bytes=999, keys_only=True))
