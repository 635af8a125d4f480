"""Fields of records as columns show them."""

from __future__ import annotations

import json

import msgspec
import pytest

from streamhouse.core.search import fields
from streamhouse.core.search.fields import MAX_FIELDS, MAX_JSON_BYTES, MAX_STEPS, Row, WrittenRow, fields_of
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
    assert WrittenRow(RECORD).text(field) == text


def test_several_are_named_with_commas_between_them() -> None:
    names = fields_of(' value.name , value["a, b"] ,headers.trace ')
    assert [(field.root, field.parts) for field in names] == [
        ("value", ("name",)),
        ("value", ("a, b",)),
        ("headers", ("trace",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        *[",", "value.", "value.a value.b", "amount", "value.a,,key", ",".join(["key"] * (MAX_FIELDS + 1))],
        "value" + ".a" * (MAX_STEPS + 1),
    ],
)
def test_what_names_no_fields_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        fields_of(text)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"{", b"[" * 100_000, b'{"a": "\\ud800"}', b'{"a"'])
def test_values_of_any_bytes_have_no_field(value: bytes | None) -> None:
    [field] = fields_of("value.a.b")
    assert WrittenRow(Record(0, 0, None, value)).text(field) is None


class CountingDecoder:
    """Decodes, and counts how many bytes it was given."""

    def __init__(self, kind: object) -> None:
        self._decoder: msgspec.json.Decoder[object] = msgspec.json.Decoder(kind)
        self.read_bytes = 0

    def decode(self, data: bytes) -> object:
        self.read_bytes += len(data)
        return self._decoder.decode(data)


def test_each_part_is_read_once_however_many_fields_lead_into_it(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = CountingDecoder(dict[str, msgspec.Raw])
    monkeypatch.setattr(fields, "_OBJECT", objects)
    value = json.dumps({"a": {"b": {f"c{number}": "x" * 50 for number in range(200)}}}).encode()
    chosen = fields_of(",".join(f"value.a.b.c{number}" for number in range(MAX_FIELDS)))

    row = WrittenRow(Record(0, 0, None, value))

    assert [row.text(field) for field in chosen] == ["x" * 50] * MAX_FIELDS
    assert objects.read_bytes < 3 * len(value), "once for each of value, a and b"


def test_the_longest_way_into_a_value_can_be_gone() -> None:
    [field] = fields_of("value" + ".a" * MAX_STEPS)
    value = '{"a": ' * MAX_STEPS + "1" + "}" * MAX_STEPS
    assert WrittenRow(Record(0, 0, None, value.encode())).text(field) == "1"


@pytest.mark.parametrize(("size_bytes", "text"), [(MAX_JSON_BYTES, "1"), (MAX_JSON_BYTES + 1, None)])
def test_what_is_too_long_has_no_fields(size_bytes: int, text: str | None) -> None:
    [field, whole] = fields_of("value.a,value")
    value = b'{"a":1}'.ljust(size_bytes)
    record = Record(0, 0, None, value)

    assert WrittenRow(record).text(field) == text
    assert field.of(Row(record)) == (None if text is None else 1)
    assert WrittenRow(record).text(whole) == value.decode()
