"""Conditions on records: what holds, and where a text that is none is wrong."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamhouse.core.search.fields import Row
from streamhouse.core.search.language import MAX_COMPARISONS, MAX_DEPTH, MAX_LENGTH, condition_of
from streamhouse.format.rows import Record
from streamhouse.model.errors import InvalidInput

ORDER: dict[str, Any] = {
    "amount": 12.5,
    "count": 3,
    "paid": True,
    "note": None,
    "customer": {"name": "Ann", "id": "7"},
    "tags": ["new", "gift", 1],
    "a b": "spaced",
    "big": 12345678901234567890123,
}
RECORD = Record(
    17,
    1_767_225_600_000,
    b"alice",
    json.dumps(ORDER).encode(),
    (("trace", b"first"), ("trace", b"last"), ("raw id", b"\xff\x01x"), ("empty", None)),
)


def holds(text: str, record: Record = RECORD) -> bool:
    return condition_of(text).holds(Row(record))


@pytest.mark.parametrize(
    "text",
    [
        'value.amount > 3 and key == "alice"',
        "value.amount >= 12.5",
        "value.amount<13",
        "-1 < value.amount",
        "value.count = 3",
        "value.count == 3.0",
        "value.paid",
        "value.paid == true",
        "not value.paid == false",
        "value.note == null",
        "value.nothing.at.all == null",
        'value.customer.name == "Ann"',
        "value.customer.name == 'Ann'",
        'value.customer.name startswith "A"',
        'value.customer.name < "B"',
        'value.customer["name"] != "Bob"',
        'value["a b"] == "spaced"',
        'value.tags[1] == "gift"',
        'value.tags.0 == "new"',
        'value.tags contains "gift"',
        "value.tags contains 1",
        "value.big == 12345678901234567890123",
        "value.big > 12345678901234567890122",
        'value contains "Ann"',
        'key contains "lic"',
        'headers.trace == "last"',
        'headers["raw id"] contains "x"',
        "headers.empty == null",
        "offset == 17 && timestamp >= 1767225600000",
        "! (value.count > 3 || value.count < 3)",
        'value.count < 5 or value.count > 5 and key == "bob"',
        'value.customer.name == "\\u0041nn"',
        'timestamp == "2026-01-01"',
        "timestamp == '2026-01-01T00:00Z'",
        'timestamp <= "2026-01-01T01:00:00.000+01:00"',
        '"2025-12-31" < timestamp and timestamp < "2026-01-01T00:00:00.001"',
        'timestamp > "0001-01-01T00:00+23:59" and timestamp < "9999-12-31T23:59-23:59"',
    ],
)
def test_what_holds(text: str) -> None:
    assert holds(text)
    assert not holds(f"not ({text})")


@pytest.mark.parametrize(
    "text",
    [
        "value.paid == 1",
        "value.count == true",
        'value.count == "3"',
        "value.customer.id == 7",
        'value.customer.name > 3 or value.customer.name < 3 or value.note < 3 or "a" < value.note',
        "value.customer == value.customer",
        "value.tags == 1",
        "value.tags[9] == 1",
        "value.customer[0] == 1",
        'value.tags contains "if"',
        "value.tags contains true",
        'value.count contains "3"',
        "key.id == 1",
        'headers.nobody contains ""',
        '(value.count < 5 or value.count > 5) and key == "bob"',
    ],
)
def test_what_does_not_hold(text: str) -> None:
    assert not holds(text)


@pytest.mark.parametrize("data", [b"7", b" 7.0 "])
def test_a_value_as_a_whole_is_a_number_beside_a_number(data: bytes) -> None:
    assert holds("value == 7", Record(0, 0, None, data))
    assert not holds("value == 8", Record(0, 0, None, data))


def test_a_value_as_a_whole_is_its_text_beside_a_text() -> None:
    assert holds('value == "7" and key == null', Record(0, 0, None, b"7"))
    assert not holds('value == "7"', Record(0, 0, None, b'"7"'))


@pytest.mark.parametrize("data", [None, b"", b"\xff", b"{", b"[" * 100_000, b"1" * 10_000, b"NaN"])
@pytest.mark.parametrize(
    "text", ['value.a.b == "x"', "value > 3", "value[0]", 'value == "x"', 'key.a startswith "x"', 'value.a contains ""']
)
def test_values_of_any_bytes_are_only_not_found(data: bytes | None, text: str) -> None:
    assert holds(text, Record(0, 0, data, data)) is False or data == b"1" * 10_000


@pytest.mark.parametrize(
    ("text", "at", "says"),
    [
        ("", 1, "the end"),
        ("value.amount >", 15, "a field such as value.amount, a number or a text in quotes, not the end"),
        ("value.amount > and 3", 16, "'and'"),
        ("value.amount 3", 14, "and, or, or the end, not '3'"),
        ("amount > 3", 1, "there is no 'amount'"),
        ("key == alice", 8, "there is no 'alice'"),
        ('key == "alice', 8, "a text without its end"),
        ("(value.a == 1", 14, ")"),
        ("value.a == 1)", 13, "')'"),
        ("value.a % 2", 9, "'%' means nothing here"),
        ("3", 2, "a comparison"),
        ("headers == 1", 1, "which header"),
        ("offset.a == 1", 1, "has no fields"),
        ("value.a == 1e999", 12, "too large"),
        ('value.a == "x\\ud800"', 12, "\\ud800 is half of a character"),
        ('value.a == "\\d"', 12, "invalid escape"),
        ('value["\\udc00"] == 1', 7, "\\udc00 is half of a character"),
        ('timestamp > "yesterday"', 13, "'yesterday' is not a time"),
        ('"2026-13-01" <= timestamp', 1, "'2026-13-01' is not a time"),
        ("value.a == 12abc", 12, "means nothing"),
        ("__import__('os').system('true')", 17, "'.' means nothing"),
        ("value.__class__()", 16, "'('"),
    ],
)
def test_what_is_no_condition_is_refused_with_its_place(text: str, at: int, says: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^character {at}: .*{re.escape(says)}") as refused:
        condition_of(text)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("text", "sides"),
    [
        ('offset == "3"', "a number with a text"),
        ('offset != "3"', "a number with a text"),
        ("offset == null", "a number with null"),
        ("offset", "a number with true or false"),
        ('offset contains "3"', "a number with a text"),
        ('timestamp startswith "2026"', "a number with a text"),
        ("headers.x == 5", "a text with a number"),
        ("5 < headers.x", "a number with a text"),
        ("headers.x", "a text with true or false"),
        ("headers.x == offset", "a text with a number"),
        ("key == offset", "a text with a number"),
        ("value contains 3", "a text with a number"),
        ("key startswith true", "a text with true or false"),
        ("value startswith null", "a text with null"),
        ("value.a startswith 3", "JSON with a number"),
        ("value.a < null", "JSON with null"),
        ("value >= true", "JSON with true or false"),
        ('3 == "3"', "a number with a text"),
    ],
)
def test_what_is_the_same_for_every_record_is_refused(text: str, sides: str) -> None:
    with pytest.raises(InvalidInput, match=rf"^character 18: {re.escape(text)} compares {sides},") as refused:
        condition_of(f"value.a == 1 and {text} or value.b == 2")
    assert refused.value.hint


def test_conditions_have_limits() -> None:
    condition_of(" and ".join(["value.a == 1"] * MAX_COMPARISONS))
    condition_of("(" * (MAX_DEPTH - 1) + "value.a" + ")" * (MAX_DEPTH - 1))
    for text in (
        " and ".join(["value.a"] * (MAX_COMPARISONS + 1)),
        "(" * MAX_DEPTH + "value.a" + ")" * MAX_DEPTH,
        "not " * MAX_DEPTH + "value.a",
        "value." + "a" * MAX_LENGTH,
    ):
        with pytest.raises(InvalidInput):
            condition_of(text)


_WORDS = ["value.a", "key", "headers.x", "offset", "and", "or", "not", "(", ")", "==", "<", "contains", "3", '"x"', "!"]


@given(st.one_of(st.text(max_size=60), st.lists(st.sampled_from(_WORDS), max_size=12).map(" ".join)))
def test_any_text_is_a_condition_or_is_refused(text: str) -> None:
    try:
        condition = condition_of(text)
    except InvalidInput:
        return
    assert condition.holds(Row(RECORD)) in (True, False)
