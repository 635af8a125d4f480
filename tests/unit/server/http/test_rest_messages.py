"""A topic's messages as a console asks for them: every record once, in order, by page, and only those that match."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from uuid import uuid4

import pytest

from node.wait import HUNG_SECONDS
from rest_parts.caller import API, RestCaller
from rest_parts.storing import store, store_numbers
from streamhouse.broker.records import RecordDoor
from streamhouse.core.search import fields
from streamhouse.server.http.rest import messages, search_page
from streamhouse.server.http.rest.search import Search
from streamhouse.testing import Broker
from streamhouse.wire.http.rest.records import MessagesQuery


@pytest.fixture
def topic(broker: Broker) -> str:
    """With three partitions."""
    name = f"topic-{uuid4().hex[:8]}"
    broker.create_topic(name, 3)
    return name


def search(rest: RestCaller, topic: str, query: str) -> Any:
    return rest.get(f"topics/{topic}/messages?{query}")


def all_numbers(rest: RestCaller, topic: str, query: str) -> list[int]:
    """Those of all pages."""
    numbers: list[int] = []
    following = ""
    while True:
        answer = search(rest, topic, f"{query}{following}")
        numbers += [record["value"]["n"] for record in answer["records"]]
        if answer["next"] is None:
            return numbers
        following = f"&next={answer['next']}"


@pytest.mark.parametrize(("order", "step"), [("oldest", 1), ("newest", -1)])
@pytest.mark.parametrize("limit", [1, 7, 500])
def test_pages_give_every_record_once_and_in_order(
    rest: RestCaller, topic: str, order: str, step: int, limit: int
) -> None:
    store_numbers(rest, topic, 50)

    assert all_numbers(rest, topic, f"order={order}&limit={limit}") == list(range(50))[::step]


def test_the_newest_come_first_unless_asked_otherwise(rest: RestCaller, topic: str) -> None:
    store_numbers(rest, topic, 60)

    answer = search(rest, topic, "")

    assert [record["value"]["n"] for record in answer["records"]] == list(range(59, 9, -1))
    assert answer["next"] is not None


@pytest.mark.parametrize(("order", "step"), [("oldest", 1), ("newest", -1)])
def test_a_search_goes_on_where_it_had_looked_at_enough(
    rest: RestCaller, topic: str, order: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_page, "_MAX_SCANNED", 0)
    for start in range(0, 9_000, 3_000):
        store(
            rest,
            topic,
            *({"value": {"n": number}, "key": str(number), "partition": 0} for number in range(start, start + 3_000)),
        )
    first = search(rest, topic, f"partition=0&order={order}&key=4500")

    assert first["records"] == []
    assert 0 < first["scanned_records"] < 4_500
    assert first["next"] is not None
    assert all_numbers(rest, topic, f"partition=0&order={order}&key=4500") == [4500]
    assert all_numbers(rest, topic, f"partition=0&order={order}&limit=500") == list(range(9_000))[::step]


def test_a_page_has_no_more_bytes_than_fit(rest: RestCaller, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_page, "_MAX_ANSWER_BYTES", 10_000)
    store(rest, topic, *({"value": {"n": number, "x": "x" * 3_000}, "partition": number % 3} for number in range(20)))

    assert len(search(rest, topic, "")["records"]) == 3
    assert sorted(all_numbers(rest, topic, "")) == list(range(20))


def test_times_out_of_order_lose_nothing(rest: RestCaller, topic: str) -> None:
    times = [50, 10, 90, 20, 80, 30]
    store(
        rest,
        topic,
        *({"value": {"n": number}, "partition": number % 2, "timestamp_ms": time} for number, time in enumerate(times)),
    )

    for order in ("oldest", "newest"):
        assert sorted(all_numbers(rest, topic, f"order={order}&limit=2")) == list(range(6))


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("limit", [1, 2, 500])
@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("from_ms=500", [0, 2, 3, 5]),
        ("from_ms=500&to_ms=5000", [2, 3, 5]),
        ("to_ms=5000", [1, 2, 3, 4, 5]),
        ("to_ms=500", [1, 4]),
        ("from_ms=5000&to_ms=500", []),
    ],
)
def test_a_time_range_has_all_that_is_in_it_also_behind_later_times(
    rest: RestCaller, topic: str, query: str, numbers: list[int], limit: int, order: str
) -> None:
    times = [9_000_000, 100, 1_000, 1_001, 200, 1_002]
    store(rest, topic, *({"value": {"n": n}, "partition": 0, "timestamp_ms": time} for n, time in enumerate(times)))

    assert sorted(all_numbers(rest, topic, f"order={order}&limit={limit}&{query}")) == numbers
    found = rest.call("GET", f"topics/{topic}/messages/download?order={order}&{query}").body.splitlines()
    assert sorted(json.loads(line)["value"]["n"] for line in found) == numbers


def test_the_newest_of_a_time_range_are_there_before_all_that_is_younger_was_looked_at(
    rest: RestCaller, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_page, "_MAX_SCANNED", 0)
    monkeypatch.setattr(search_page, "_MIN_SCANNED", 1)
    store(rest, topic, *({"value": {"n": n}, "partition": 0, "timestamp_ms": n} for n in range(3_000)))

    first = search(rest, topic, "from_ms=10&to_ms=13")

    assert [record["value"]["n"] for record in first["records"]] == [12, 11, 10]
    assert first["scanned_records"] == 3
    assert first["next"] == "0:13-3000"
    assert all_numbers(rest, topic, "from_ms=10&to_ms=13") == [12, 11, 10]
    assert all_numbers(rest, topic, "from_ms=10&to_ms=1500&limit=400") == list(range(1_499, 9, -1))


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("key=b", [1]),
        ("key=nobody", []),
        ("field=n&equals=2", [2]),
        ("field=customer.name&equals=Ann", [0, 2]),
        ("field=customer.name&equals=%22Ann%22", [0, 2]),
        ("field=tags.1&equals=y", [0]),
        ("field=tags.7&equals=y", []),
        ("field=tags.x&equals=y", []),
        ("field=paid&equals=true", [1]),
        ("field=paid&equals=1", [2]),
        ("field=note&equals=null", [1]),
        ("field=customer&equals={%22name%22:%22Bob%22}", [1]),
        ("field=id&equals=7", [0, 1]),
        ("field=customer.name&equals=Ann&key=c", [2]),
        ("contains=Bob", [1]),
        ("contains=bob", []),
        ("contains_hex=426f62", [1]),
        ("contains=a1b2", [2]),
        ("contains=trace", [2]),
        ("contains=Ann&key=c", [2]),
        ("where=value.n%20%3E%200", [1, 2]),
        ("where=value.paid", [1]),
        ("where=key%20==%20%22a%22%20or%20headers.trace%20==%20%22a1b2%22", [0, 2]),
        ("where=value.n%20%3E%200&contains=Ann", [2]),
        ("where=timestamp%20%3C%201000", [0]),
        ("where=timestamp%20%3E=%20%221970-01-01T00:00:01Z%22", [1, 2]),
        ("from_ms=1000", [1, 2]),
        ("to_ms=1000", [0]),
        ("from_ms=1000&to_ms=2000", [1]),
        ("from_ms=9000", []),
        ("partition=1", [1]),
    ],
)
@pytest.mark.parametrize("order", ["oldest", "newest"])
def test_only_what_matches_is_shown(rest: RestCaller, topic: str, query: str, numbers: list[int], order: str) -> None:
    store(
        rest,
        topic,
        {
            "key": "a",
            "value": {"n": 0, "customer": {"name": "Ann"}, "tags": ["x", "y"], "id": 7},
            "partition": 0,
            "timestamp_ms": 0,
        },
        {
            "key": "b",
            "value": {"n": 1, "customer": {"name": "Bob"}, "paid": True, "id": "7", "note": None},
            "partition": 1,
            "timestamp_ms": 1000,
        },
        {
            "key": "c",
            "value": {"n": 2, "customer": {"name": "Ann"}, "paid": 1},
            "headers": [{"name": "trace", "value": "a1b2"}],
            "partition": 2,
            "timestamp_ms": 2000,
        },
    )

    assert sorted(all_numbers(rest, topic, f"order={order}&{query}")) == numbers


def test_values_that_are_not_json_have_no_fields(rest: RestCaller, topic: str) -> None:
    store(rest, topic, {"value": "a=1", "value_format": "text"}, {"value": "/w==", "value_format": "base64"}, {})

    assert search(rest, topic, "field=a&equals=1")["records"] == []
    assert len(search(rest, topic, "")["records"]) == 3


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("field=a", 400, "invalid-input"),
        ("equals=a", 400, "invalid-input"),
        ("limit=501", 400, "invalid-input"),
        ("order=random", 400, "invalid-input"),
        ("partition=3", 404, "not-found"),
        ("next=nonsense", 400, "invalid-input"),
        ("next=9:0-1", 400, "invalid-input"),
        ("next=0:0-1/9:0-1", 400, "invalid-input"),
        ("next=0:0-1/", 400, "invalid-input"),
        ("next=0:0-1/0:0-1/0:0-1", 400, "invalid-input"),
        ("from_ms=-1", 400, "invalid-input"),
        ("contains=", 400, "invalid-input"),
        ("contains_hex=0", 400, "invalid-input"),
        ("where=", 400, "invalid-input"),
        ("where=value.a%20%3E", 400, "invalid-input"),
        ("where=offset%20==%20%223%22", 400, "invalid-input"),
        ("fields=amount", 400, "invalid-input"),
    ],
)
def test_a_query_that_is_none_is_refused(rest: RestCaller, topic: str, query: str, status: int, code: str) -> None:
    rest.refused(status, code, "GET", f"topics/{topic}/messages?{query}")


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("given", ["0:5-2", "0:0-9223372036854775807", "0:9223372036854775806-9223372036854775807"])
def test_a_place_to_go_on_that_nobody_answered_does_no_harm(
    rest: RestCaller, topic: str, order: str, given: str
) -> None:
    store(rest, topic, {"value": {"n": 1}, "partition": 0})

    answer = search(rest, topic, f"order={order}&next={given}")

    assert [record["value"]["n"] for record in answer["records"]] == ([1] if given.startswith("0:0-") else [])
    assert answer["next"] is None


def test_a_condition_that_is_none_is_refused_with_its_place(rest: RestCaller, topic: str) -> None:
    problem = rest.refused(400, "invalid-input", "GET", f"topics/{topic}/messages?where=value.n%20%3E%20and")
    assert problem["detail"].startswith("character 11: wanted a field")
    assert "value.amount > 3" in problem["hint"]


def test_chosen_fields_are_beside_the_record_as_they_were_written(rest: RestCaller, topic: str) -> None:
    value = f'{{"n": 12345678901234567890.50, "long": "{"x" * 600}"}}'
    store(rest, topic, {"key": "a", "value": value, "value_format": "text"})

    [record] = search(rest, topic, "fields=value.n,key,value.none,value.long")["records"]

    assert record["fields"] == ["12345678901234567890.50", "a", None, "x" * 500 + "…"]
    assert "fields" not in search(rest, topic, "")["records"][0]


@pytest.mark.parametrize(
    ("query", "numbers", "too_long"),
    [
        ("field=n&equals=1", [1], 1),
        ("where=value.n%20==%201", [1], 1),
        ("where=not%20(key%20==%20null%20or%20value.n%20==%205)", [1, 2], 1),
        ("where=key%20!=%20null", [1, 2], 0),
        ("contains=2", [2], 0),
    ],
)
def test_what_is_too_long_to_have_fields_is_told(
    rest: RestCaller, topic: str, query: str, numbers: list[int], too_long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(rest, topic, {"key": "a", "value": {"n": 1}}, {"key": "b", "value": {"n": 2, "long": "x" * 100}})
    monkeypatch.setattr(fields, "MAX_JSON_BYTES", 50)

    answer = search(rest, topic, query)
    *records, last = rest.call("GET", f"topics/{topic}/messages/download?{query}").body.splitlines()

    assert sorted(record["value"]["n"] for record in answer["records"]) == numbers
    assert answer["too_long"] == too_long
    assert len(records) == len(numbers) - (0 if too_long else 1)
    assert json.loads(last).get("too_long", 0) == too_long


def test_others_are_answered_while_fields_are_cut_out_of_long_values(
    rest: RestCaller, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cutting, answered = threading.Event(), threading.Event()
    make = messages._answer

    def make_after_others(*given: Any, **named: Any) -> Any:
        cutting.set()
        assert answered.wait(HUNG_SECONDS), "the loop was held"
        return make(*given, **named)

    store(rest, topic, {"value": {"a": {"b": "x" * 100_000}}})
    monkeypatch.setattr(messages, "_answer", make_after_others)
    with ThreadPoolExecutor() as threads:
        searching = threads.submit(search, rest, topic, "fields=value.a.b")
        assert cutting.wait(HUNG_SECONDS)
        rest.get("node")
        answered.set()
        [record] = searching.result()["records"]

    assert record["fields"] == ["x" * 500 + "…"]


async def test_only_some_searches_hold_records_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    running: list[str] = []
    go_on = asyncio.Event()

    async def page(_: object, name: str, query: MessagesQuery) -> None:
        running.append(name)
        await go_on.wait()

    monkeypatch.setattr(messages._Messages, "_page", page)
    searches = messages._Messages(cast(RecordDoor, None))
    count = messages._AT_ONCE + 4
    waiting = [asyncio.create_task(searches._in_turn("orders", MessagesQuery())) for _ in range(count)]
    for _ in range(count):  # each goes as far as it can
        await asyncio.sleep(0)

    assert len(running) == messages._AT_ONCE
    go_on.set()
    await asyncio.gather(*waiting)
    assert len(running) == count


@pytest.mark.parametrize("call", ["messages", "messages/download"])
def test_a_search_ends_when_its_client_leaves(
    rest: RestCaller, connect: Callable[[], socket.socket], topic: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def run(*_: object) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    store(rest, topic, {"value": 1})
    monkeypatch.setattr(Search, "run", run)
    connection = connect()
    connection.sendall(f"GET {API}/topics/{topic}/{call} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    assert begun.wait(HUNG_SECONDS)
    assert not ended.is_set()
    connection.close()
    assert ended.wait(HUNG_SECONDS)
