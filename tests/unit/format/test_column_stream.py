"""Long logs as a few sets of columns: none too large, none lost, and never two kinds of timestamps in one."""

from __future__ import annotations

import pytest

from format_samples.kernels import Kernel, both_kernels, using
from streamhouse.format.batch import stamp_append_time
from streamhouse.format.column_stream import ColumnsPart, iter_columns
from streamhouse.format.compression import Codec
from streamhouse.format.records import Record, encode_records, records_of
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
