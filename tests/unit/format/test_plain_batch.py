"""Batches made in one go: the same bytes as the general way makes."""

from __future__ import annotations

from types import ModuleType

import pytest

from streamhouse.format import _plain_batch, plain_batch_twin
from streamhouse.format.batch import HEADER_BYTES, check_produced
from streamhouse.format.plain_batch import PLAIN_RECORD_BYTES
from streamhouse.format.records import encode_records
from streamhouse.format.rows import Record

each_kernel = pytest.mark.parametrize("kernel", [_plain_batch, plain_batch_twin])
ROWS = [
    [(None, b"")],
    [(b"key", b"value")],
    [(b"", b"x" * 63), (None, b"y" * 64), (b"k" * 1023, b"z" * 1024), (b"l", b"w" * 100_000)],
    [(b"%d" % number, b"v" * number) for number in range(1500)],
]
each_rows = pytest.mark.parametrize("rows", ROWS, ids=["empty", "one", "sizes at the edges", "many"])


@each_kernel
@each_rows
def test_it_is_what_the_general_encoder_makes(kernel: ModuleType, rows: list[tuple[bytes | None, bytes]]) -> None:
    batch, header = kernel.encode_plain_batch(rows, 1_700_000_000_000)
    assert batch == encode_records([Record(0, 1_700_000_000_000, key, value) for key, value in rows])
    assert header == check_produced(memoryview(batch))


@each_kernel
@each_rows
def test_no_record_takes_more_than_is_reckoned_with(kernel: ModuleType, rows: list[tuple[bytes | None, bytes]]) -> None:
    batch, _ = kernel.encode_plain_batch(rows, 0)
    reckoned = sum(len(key or b"") + len(value) + PLAIN_RECORD_BYTES for key, value in rows)
    assert len(batch) - HEADER_BYTES <= reckoned
