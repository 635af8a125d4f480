"""Records as `consume` prints them."""

from __future__ import annotations

import json

import pytest

from streamhouse.cli.record_format import record_renderer, show_timestamp
from streamhouse.client.consumer import ConsumedRecord
from streamhouse.model.errors import InvalidInput


def record(
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    headers: tuple[tuple[str, bytes | None], ...] = (("trace", b"abc"), ("empty", None)),
) -> ConsumedRecord:
    return ConsumedRecord(
        topic="orders", partition=3, offset=42, timestamp_ms=1_700_000_000_123, key=key, value=value, headers=headers
    )


@pytest.mark.parametrize(
    ("format_text", "printed"),
    [
        ("value", b"v\n"),
        ("%k %v %o %p %t %T", b"k v 42 3 orders 1700000000123\n"),
        ("%h", b"trace=abc,empty=null\n"),
        ("100%% %v\\tend\\\\ \\q", b"100% v\tend\\ \\q\n"),
        ("é%v", "év\n".encode()),
        ("full", b"3:42 2023-11-14T22:13:20.123Z key=k headers=trace=abc,empty=null value=v\n"),
    ],
)
def test_a_format_prints_what_it_names(format_text: str, printed: bytes) -> None:
    assert record_renderer(format_text, escape=True)(record()) == printed


def test_null_is_not_the_empty_value() -> None:
    render = record_renderer("[%k|%v]", escape=True)

    assert render(record(key=None, value=b"")) == b"[null|]\n"


def test_json_keeps_bytes_that_are_no_text() -> None:
    printed = record_renderer("json", escape=False)(record(key=b"\xff\x00", value=None, headers=(("h", b"\x1b"),)))

    assert json.loads(printed) == {
        "topic": "orders",
        "partition": 3,
        "offset": 42,
        "timestamp_ms": 1_700_000_000_123,
        "key": {"base64": "/wA="},
        "value": None,
        "headers": [{"key": "h", "value": "\x1b"}],
    }
    assert b"\x1b" not in printed


@pytest.mark.parametrize("format_text", ["value", "full", "%k%v%h"])
def test_escaping_keeps_control_characters_from_the_terminal(format_text: str) -> None:
    hostile = record(key=b"\x1b[2J", value=b"\x1b]0;x\x07", headers=(("\x1b", b"\r"),))

    assert b"\x1b" not in record_renderer(format_text, escape=True)(hostile)
    assert b"\x1b" in record_renderer(format_text, escape=False)(hostile)


@pytest.mark.parametrize("format_text", ["%x", "%", "yaml", ""])
def test_a_format_that_means_nothing_is_refused(format_text: str) -> None:
    with pytest.raises(InvalidInput):
        record_renderer(format_text, escape=True)


def test_a_timestamp_outside_the_calendar_stays_a_number() -> None:
    assert show_timestamp(2**62) == str(2**62)
    assert show_timestamp(-1) == "1969-12-31T23:59:59.999Z"
