"""A look for a time costs so much and no more, whatever producers wrote into the headers of their batches."""

from __future__ import annotations

import struct

import pytest
from crc32c import crc32c

from log_parts.batches import real
from log_parts.segments import at
from streamhouse.format.compression import Codec
from streamhouse.log.time_search import TimeSearch, newest_timestamp

FAR_MS = 2**60
MIB = 2**20


def lying(base_offset: int, *values: bytes) -> memoryview:
    """Its records are of 1970, and its header says that one of them is of the far future."""
    batch = at(base_offset, real(*values, codec=Codec.ZSTD))
    struct.pack_into(">q", batch, 35, FAR_MS)
    struct.pack_into(">I", batch, 17, crc32c(batch[21:]))
    return batch


def found_in(*batches: memoryview, log_start_offset: int = 0) -> tuple[int, int] | None:
    return TimeSearch(2_000, log_start_offset).find([b"".join(batches)])


def test_batches_whose_headers_are_not_so_are_passed_over() -> None:
    assert found_in(*(lying(offset, b"v") for offset in range(100))) is None
    honest = at(100, real(b"v", timestamps=(3_000,)))
    assert found_in(*(lying(offset, b"v") for offset in range(100)), honest) == (100, 3_000)


@pytest.mark.parametrize(("size_bytes", "looked_at"), [(1, 1_024), (4 * MIB, 4), (17 * MIB, 1), (129 * MIB, 0)])
def test_a_search_that_has_read_enough_in_vain_believes_the_next_header(size_bytes: int, looked_at: int) -> None:
    """Each of them is some hundred bytes as it is stored."""
    value = bytes(size_bytes)
    sample = lying(0, value)
    batches = [at(offset, memoryview(bytearray(sample))) for offset in range(looked_at + 3)]

    assert found_in(*batches) == (looked_at, FAR_MS)
    assert found_in(*batches, log_start_offset=looked_at + 2) in (None, (looked_at + 2, FAR_MS))


def test_what_is_read_in_several_runs_is_counted_together() -> None:
    search = TimeSearch(2_000, 0)
    value = bytes(4 * MIB)

    assert [search.find([lying(offset, value)]) for offset in range(5)] == [None] * 4 + [(4, FAR_MS)]


def test_the_newest_time_of_a_batch_that_grows_too_far_is_its_headers() -> None:
    """It is read only because the log begins inside it."""
    assert newest_timestamp([lying(0, b"v", bytes(129 * MIB))], 1) == FAR_MS
    assert newest_timestamp([lying(0, b"v", b"v")], 1) == 1_001
