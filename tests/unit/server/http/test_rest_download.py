"""What a search finds as a file: all of it, in order, safe to open, and it says when it is not all."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rest_parts.caller import Answer, RestCaller
from rest_parts.storing import store, store_numbers
from streamhouse.format.rows import Record
from streamhouse.server.http.rest import download, merged_search
from streamhouse.testing import Broker
from streamhouse.wire.http.rest.downloads import CsvFile, cell


@pytest.fixture
def topic(broker: Broker) -> str:
    """With three partitions."""
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, 3)
    return name


def downloaded(rest: RestCaller, topic: str, query: str) -> Answer:
    answer = rest.call("GET", f"topics/{topic}/messages/download?{query}")
    assert answer.status == 200, answer
    return answer


def lines(answer: Answer) -> list[Any]:
    return [json.loads(line) for line in answer.body.decode().splitlines()]


def numbers(found: list[Any]) -> list[int]:
    return [line["value"]["n"] for line in found]


@pytest.mark.parametrize("held", [1, 7, 1_000])
@pytest.mark.parametrize(("order", "step"), [("oldest", 1), ("newest", -1)])
def test_every_record_is_there_once_and_in_order(
    rest: RestCaller, topic: str, order: str, step: int, held: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged_search, "_HELD_RECORDS", held)
    monkeypatch.setattr(merged_search, "_LEAST_RECORDS", held)
    store_numbers(rest, topic, 500)

    answer = downloaded(rest, topic, f"order={order}")

    assert numbers(lines(answer)) == list(range(500))[::step]
    assert answer.content_type == "application/x-ndjson"
    assert answer.headers["Content-Disposition"] == f'attachment; filename="{topic}.ndjson"'


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("limit", ["_MAX_BYTES", "_MAX_SCANNED", None])
def test_what_is_cut_says_so_and_goes_on_where_it_ended(
    rest: RestCaller, topic: str, order: str, limit: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    store_numbers(rest, topic, 100)
    monkeypatch.setattr(merged_search, "_HELD_RECORDS", 30)
    monkeypatch.setattr(merged_search, "_LEAST_RECORDS", 1)
    if limit is not None:
        monkeypatch.setattr(download, limit, 20)
    found: list[int] = []
    following = ""
    rounds = 0
    while True:
        *records, last = lines(downloaded(rest, topic, f"order={order}&limit=17{following}"))
        rounds += 1
        if "cut" not in last:
            found += numbers([*records, last])
            break
        found += numbers(records)
        following = f"&next={last['next']}"
    assert sorted(found) == list(range(100))
    assert rounds > 5


def test_only_what_is_looked_for_is_in_it(rest: RestCaller, topic: str) -> None:
    store_numbers(rest, topic, 50)

    condition = quote("value.n >= 40 and value.n != 45")
    found = lines(downloaded(rest, topic, f"order=oldest&where={condition}&fields=value.n,offset"))

    assert numbers(found) == [40, 41, 42, 43, 44, 46, 47, 48, 49]
    assert found[0]["fields"] == ["40", "13"]


def test_json_with_line_ends_is_a_line(rest: RestCaller, topic: str) -> None:
    store(rest, topic, {"value": '{\r\n "n":\n 1\n}', "value_format": "text"})

    [record] = lines(downloaded(rest, topic, ""))

    assert record["value"] == {"n": 1}


def test_a_table_has_a_row_for_each_record(rest: RestCaller, topic: str) -> None:
    store(
        rest,
        topic,
        {
            "key": "a",
            "value": {"n": 1, "note": 'says "hi", twice'},
            "headers": {"trace": "x"},
            "partition": 0,
            "timestamp_ms": 5,
        },
        {"value": "/w==", "value_format": "base64", "partition": 1, "timestamp_ms": 6},
    )

    whole = downloaded(rest, topic, "format=csv&order=oldest")
    chosen = downloaded(rest, topic, "format=csv&order=oldest&fields=value.note,headers.trace")

    assert whole.content_type == "text/csv; charset=utf-8"
    assert table(whole) == [
        ["partition", "offset", "timestamp_ms", "key", "value", "headers"],
        [
            *["0", "0", "5", "a", '{"n": 1, "note": "says \\"hi\\", twice"}'],
            '[{"name":"trace","value":"x","format":"text"}]',
        ],
        ["1", "0", "6", "", "0xff", ""],
    ]
    assert table(chosen)[:2] == [
        ["partition", "offset", "timestamp_ms", "key", "value.note", "headers.trace"],
        ["0", "0", "5", "a", 'says "hi", twice', "x"],
    ]


def table(answer: Answer) -> list[list[str]]:
    return list(csv.reader(io.StringIO(answer.body.decode(), newline="")))


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-cmd|' /C calc'!A0", "'-cmd|' /C calc'!A0"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\uff1d1", "'\uff1d1"),
        ("-", "'-"),
        ("-1-1", "'-1-1"),
        ("\rx", "'\rx"),
        ("\ufeff=1+1", "'\ufeff=1+1"),
        ("\x00=1", "'\x00=1"),
        ("\u200b\xa0+1", "'\u200b\xa0+1"),
        ("\t=1", "'\t'=1"),
        ("\n=1", "'\n'=1"),
        ("x;=1+1", "x;'=1+1"),
        ("x;\ufeff @SUM(A1);y", "x;'\ufeff @SUM(A1);y"),
        ('x;"=1+1', "x;'\"=1+1"),
        ("x\t+1", "x\t'+1"),
        ("x\r\n=1", "x\r\n'=1"),
        ("x;-1+cmd", "x;'-1+cmd"),
        ("=1;=2;;=3", "'=1;'=2;;'=3"),
    ],
)
def test_no_cell_is_run_as_a_formula(rest: RestCaller, topic: str, text: str, marked: str) -> None:
    store(rest, topic, {"key": text, "value": {"cell": text}})

    answer = downloaded(rest, topic, "format=csv&fields=value.cell")

    assert table(answer)[1][3:] == [marked, marked]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@settings(database=None)
@given(text=st.text(alphabet="=+-@1x ;,\t\n\r\"'\ufeff\x00.e"))
def test_whatever_separates_cells_none_begins_as_a_formula(separator: str, text: str) -> None:
    """As simple readers see it, to whom quotes mean something only where a cell begins."""
    line = CsvFile([], lambda _: []).lines([(0, Record(0, 0, text.encode(), text.encode()))]).decode()
    for row in csv.reader(io.StringIO(line, newline=""), delimiter=separator):
        for found in row:
            number = found.strip().rstrip(",]} ")
            assert not re.match(r"[\s\ufeff\x00]*[=+@-]", found) or re.fullmatch(
                r"-[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", number
            ), row


@pytest.mark.parametrize("text", ["-1", "-1.5e3", "1", "plain", "a=b", "0x-1", "a; b", "[\n -1,\n -2.5\n]", "a;-1;b"])
def test_numbers_and_words_stay_as_they_are(text: str) -> None:
    assert cell(text) == text


def test_a_table_that_is_cut_says_so(rest: RestCaller, topic: str) -> None:
    store_numbers(rest, topic, 10)

    *_, last = table(downloaded(rest, topic, "format=csv&limit=3"))

    assert last[0].startswith("# cut: as many records as were asked for; go on with next=0:0-")


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("where=value.n%20%3E", 400, "invalid-input"),
        ("format=xlsx", 400, "invalid-input"),
        ("limit=100001", 400, "invalid-input"),
        ("partition=3", 404, "not-found"),
    ],
)
def test_what_cannot_be_downloaded_is_refused(rest: RestCaller, topic: str, query: str, status: int, code: str) -> None:
    rest.refused(status, code, "GET", f"topics/{topic}/messages/download?{query}")


def test_more_than_a_few_at_once_are_refused(rest: RestCaller, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_MAX_DOWNLOADS", 0)
    rest.refused(503, "unavailable", "GET", f"topics/{topic}/messages/download")
