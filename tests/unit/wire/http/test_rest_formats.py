"""Bytes in JSON and back: whatever is stored can be shown, and what is shown is what is stored."""

from __future__ import annotations

from base64 import b64encode

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from streamhouse.model.errors import InvalidInput
from streamhouse.wire.http.rest.formats import Format, Header, ShownAs, bytes_of, headers_of, shown, shown_headers

WISHES: tuple[ShownAs, ...] = ("auto", "json", "text", "base64")
HEADERS = st.lists(st.tuples(st.text(), st.none() | st.binary())).map(tuple)


def as_json(value: object) -> Raw:
    return Raw(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("given", "written_as", "stored"),
    [
        (Raw(b'{"a" : 1.10}'), "json", b'{"a" : 1.10}'),
        (Raw(b'"x"'), "json", b'"x"'),
        (Raw(b'"caf\xc3\xa9\\n"'), "text", "café\n".encode()),
        (Raw(b"42"), "text", b"42"),
        (Raw(b'""'), "text", b""),
        (Raw(b'"AAEC"'), "base64", b"\x00\x01\x02"),
        (Raw(b'""'), "base64", b""),
        (Raw(b"null"), "json", None),
        (Raw(b"null"), "text", None),
        (Raw(b"null"), "base64", None),
        (Raw(), "json", None),
    ],
)
def test_what_is_given_is_stored_as_its_format_says(given: Raw, written_as: Format, stored: bytes | None) -> None:
    assert bytes_of(given, written_as) == stored


@pytest.mark.parametrize(
    ("given", "written_as"),
    [
        (Raw(b'"!!"'), "base64"),
        (Raw(b'"AAE"'), "base64"),
        (Raw('"é"'.encode()), "base64"),
        (Raw(b"17"), "base64"),
        (Raw(b'"\xff"'), "json"),
        (Raw(b'"\xff"'), "text"),
        (Raw(b'"\xff"'), "base64"),
    ],
)
def test_what_is_not_what_its_format_says_is_refused(given: Raw, written_as: Format) -> None:
    with pytest.raises(InvalidInput, match=f"is not {written_as}"):
        bytes_of(given, written_as)


@pytest.mark.parametrize(
    ("stored", "wish", "as_shown", "how"),
    [
        (b'{"a": 1}', "auto", b'{"a": 1}', "json"),
        (b' {"a": 1}', "auto", b'" {\\"a\\": 1}"', "text"),
        (b"hello", "auto", b'"hello"', "text"),
        (b"hello", "json", b'"aGVsbG8="', "base64"),
        (b"17", "text", b'"17"', "text"),
        (b"\xff", "auto", b'"/w=="', "base64"),
        (b"\xff", "text", b'"/w=="', "base64"),
        (b'"\xff"', "json", b'"Iv8i"', "base64"),
        (b"[" * 100_000, "json", b'"' + b64encode(b"[" * 100_000) + b'"', "base64"),
        (b"", "auto", b'""', "text"),
        (None, "json", b"null", None),
    ],
)
def test_what_is_stored_is_shown_as_wished_if_it_can_be(
    stored: bytes | None, wish: ShownAs, as_shown: bytes, how: Format | None
) -> None:
    raw, shown_as = shown(stored, wish)

    assert (bytes(raw), shown_as) == (as_shown, how)


@given(
    st.none() | st.binary() | st.text().map(str.encode) | st.integers().map(as_json).map(bytes), st.sampled_from(WISHES)
)
def test_what_is_shown_can_be_stored_again_unchanged(stored: bytes | None, wish: ShownAs) -> None:
    raw, how = shown(stored, wish)
    again = msgspec.json.decode(msgspec.json.encode({"it": raw}), type=dict[str, Raw])["it"]

    # JSON's null is the one value that is taken for nothing.
    expected = None if how == "json" and stored == b"null" else stored
    assert bytes_of(again, how or "json") == expected


@given(HEADERS)
def test_headers_come_back_with_their_order_and_repeats(headers: tuple[tuple[str, bytes | None], ...]) -> None:
    in_json = msgspec.json.encode(shown_headers(headers))

    assert headers_of(msgspec.json.decode(in_json, type=list[Header])) == headers


def test_headers_by_name_are_text() -> None:
    assert headers_of({"a": "é", "b": None}) == (("a", "é".encode()), ("b", None))


def test_a_header_that_is_not_base64_is_refused() -> None:
    assert headers_of([Header(name="a", value=b64encode(b"\xff").decode(), format="base64")]) == (("a", b"\xff"),)
    with pytest.raises(InvalidInput, match="header a is not base64"):
        headers_of([Header(name="a", value="?", format="base64")])
