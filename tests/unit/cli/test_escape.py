"""Nothing that a stranger wrote reaches a terminal as a command."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.cli.escape import escape_bytes, escape_text


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"plain text", "plain text"),
        ("naïve 漢字 😀".encode(), "naïve 漢字 😀"),
        (b"\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        (b"line\nline\r\tend\x00", "line\\nline\\r\\tend\\x00"),
        (b"\xff\xfe", "\\xff\\xfe"),
        ("\x9b31m".encode(), "\\x9b31m"),
        ("abc\u202edef".encode(), "abc\\u202edef"),
        ("\U000e0001".encode(), "\\U000e0001"),
        (b"", ""),
    ],
)
def test_bytes_are_shown_on_one_line_without_control_characters(data: bytes, shown: str) -> None:
    assert escape_bytes(data) == shown


@given(st.binary(max_size=200))
def test_no_bytes_leave_a_control_character(data: bytes) -> None:
    assert not any(unicodedata.category(character).startswith("C") for character in escape_bytes(data))


@given(st.text(max_size=200))
def test_no_text_leaves_anything_that_cannot_be_encoded(text: str) -> None:
    escape_text(text).encode()
