"""Fields of records as columns show them."""

from __future__ import annotations

import pytest

from streamhouse.core.search.fields import MAX_FIELDS, fields_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput

RECORD = Record(
    7,
    1000,
    b'{"id": 5}',
    b'{"exact": 12345678901234567890.10, "name": "Ann \\u00fc", "none": null, "deep": {"list": [1, {"x": true}]}}',
    (("trace", b"\xff\x00"),),
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("value.exact", "12345678901234567890.10"),
        ("value.name", "Ann \u00fc"),
        ("value.none", "null"),
        ("value.deep", '{"list": [1, {"x": true}]}'),
        ("value.deep.list[1].x", "true"),
        ("value.deep.list.7", None),
        ("value.missing.more", None),
        ("value.exact.more", None),
        ("key.id", "5"),
        ("key", '{"id": 5}'),
        ("headers.trace", "0xff00"),
        ("headers.other", None),
        ("offset", "7"),
        ("timestamp", "1000"),
    ],
)
def test_a_field_is_shown_as_it_was_written(name: str, text: str | None) -> None:
    [field] = fields_of(name)
    assert field.text(RECORD) == text


def test_several_are_named_with_commas_between_them() -> None:
    names = fields_of(' value.name , value["a, b"] ,headers.trace ')
    assert [(field.root, field.parts) for field in names] == [
        ("value", ("name",)),
        ("value", ("a, b",)),
        ("headers", ("trace",)),
    ]


@pytest.mark.parametrize(
    "text", [",", "value.", "value.a value.b", "amount", "value.a,,key", ",".join(["key"] * (MAX_FIELDS + 1))]
)
def test_what_names_no_fields_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        fields_of(text)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"{", b"[" * 100_000, b'{"a": "\\ud800"}', b'{"a"'])
def test_values_of_any_bytes_have_no_field(value: bytes | None) -> None:
    [field] = fields_of("value.a.b")
    assert field.text(Record(0, 0, None, value)) is None
