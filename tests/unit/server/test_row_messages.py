"""Answers of many rows, or of long ones, are made on a thread."""

from __future__ import annotations

import threading

import pytest

from streamhouse.format.rows import Record
from streamhouse.server.row_messages import made_of


@pytest.mark.parametrize(
    ("rows", "on_the_loop"),
    [
        ([], True),
        ([Record(0, 0, None, b"v")] * 500, True),
        ([Record(0, 0, None, b"v")] * 5_000, False),
        ([Record(0, 0, None, b"v", (("", b""),) * 5_000)], False),
        ([Record(0, 0, None, b"v" * 60_000)], True),
        ([Record(0, 0, None, b"v" * 100_000)], False),
        ([Record(0, 0, b"k" * 100_000, None)], False),
        ([Record(0, 0, None, None, (("", b"h" * 100_000),))], False),
        ([Record(0, 0, None, b"v" * 10_000)] * 10, False),
    ],
)
async def test_much_of_rows_headers_or_bytes_is_not_for_the_loop(rows: list[Record], on_the_loop: bool) -> None:
    made_by = await made_of(rows, threading.get_ident)
    assert (made_by == threading.get_ident()) is on_the_loop


async def test_fields_count_like_rows() -> None:
    rows = [Record(0, 0, None, b"v")] * 500
    assert await made_of(rows, threading.get_ident, fields=2) == threading.get_ident()
    assert await made_of(rows, threading.get_ident, fields=20) != threading.get_ident()
