"""Values and bytes."""

from __future__ import annotations

from typing import Any

import pytest

from streamhouse.client.serde import serde_of
from streamhouse.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("format", "value", "data"),
    [
        ("json", {"a": 1}, b'{"a":1}'),
        ("json", "", b'""'),
        ("json", None, None),
        ("text", "ü", b"\xc3\xbc"),
        ("text", "", b""),
        ("text", None, None),
        ("bytes", b"\xff", b"\xff"),
        ("bytes", None, None),
    ],
)
def test_a_value_is_these_bytes_and_the_bytes_are_that_value(format: Any, value: object, data: bytes | None) -> None:
    serde = serde_of(format)
    assert serde.encode(value) == data
    assert serde.decode(data) == value


@pytest.mark.parametrize(
    ("format", "kind", "data"),
    [("json", None, b"{"), ("json", None, b""), ("json", int, b'"1"'), ("json", int, None), ("text", None, b"\xff")],
)
def test_other_bytes_are_a_value_error(format: Any, kind: type | None, data: bytes | None) -> None:
    serde = serde_of(format, kind)
    with pytest.raises(ValueError):  # noqa: PT011 - what is wrong with them is msgspec's to say
        serde.decode(data)


@pytest.mark.parametrize(("format", "value"), [("json", object()), ("text", 1), ("bytes", "text"), ("bytes", 3)])
def test_other_values_are_refused(format: Any, value: object) -> None:
    with pytest.raises(InvalidInput):
        serde_of(format).encode(value)


def test_a_key_may_be_bytes_where_text_is_usual() -> None:
    assert serde_of("text").encode(b"\xff") == b"\xff"


@pytest.mark.parametrize(("format", "kind"), [("xml", None), ("text", int), ("json", int | bool | object)])
def test_formats_and_types_that_there_are_not(format: Any, kind: Any) -> None:
    with pytest.raises(InvalidInput):
        serde_of(format, kind).decode(b"1")
