"""Answers of many rows are made on a thread."""

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
    ],
)
async def test_many_rows_or_headers_are_not_for_the_loop(rows: list[Record], on_the_loop: bool) -> None:
    made_by = await made_of(rows, threading.get_ident)
    assert (made_by == threading.get_ident()) is on_the_loop
